"""Files of a session design: a JSON document, and beside it the mechanism files of its tables, which it names.

The document: schema; claim, in one sentence; worst, what a day and any 24 hours cost at most, exact; tables, of each
file and sha256; rule, ticks, movement, loss; offsets, the integers of a test, where there is one; sha256 over the rest.
Tables are named by their files in the same folder, never by a path.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mechdesign.base.arguments import asked
from mechdesign.base.descriptions import json_sha256, read_json
from mechdesign.base.opening import open_regular, read_bytes
from mechdesign.errors import InputError, MechdesignError, VerificationError
from mechdesign.mechanism.session.design import SessionDesign
from mechdesign.mechanism.session.moved import MovedTest
from mechdesign.mechanism.session.offsets import Offsets
from mechdesign.mechanism.session.rules import Clock, Risk, Rule
from mechdesign.mechanism.storage.files import check_target, load, save, write_atomically
from mechdesign.setting.movement.movements import movement_from_description
from mechdesign.setting.objective.losses import named_loss

SCHEMA = "mechdesign/session-design/1"
RULES: dict[str, type[Rule]] = {kind.kind: kind for kind in (Clock, Risk, MovedTest)}
WINDOWS = ("1d", "24h")  # that a file says the worst of
_MOST_BYTES = 1 << 26
_HEAD = 64  # bytes in which a design says its schema
_FIELDS = {"schema", "claim", "worst", "tables", "rule", "ticks", "movement", "loss", "sha256"}
_NAME = re.compile(r"[^/\\\x00-\x1f]{1,255}")


@asked
def save_design(design: SessionDesign, path: str | Path, *, overwrite: bool = False) -> Path:
    """Write a design: FILE.json, say, and its tables beside it as FILE-0.nc, FILE-1.nc and so on.

    Raises: InputError for existing files without `overwrite`, or a missing folder; FileFormatError if the disk refuses.
    On failure no new file stays.
    """
    target = check_target(path, overwrite=overwrite)
    files = [target.with_name(f"{target.stem}-{number}.nc") for number in range(len(design.tables))]
    fresh = [each for each in (*files, target) if not each.exists()]
    for each in files:
        check_target(each, overwrite=overwrite)
    try:
        for each, table in zip(files, design.tables, strict=True):
            save(table, each, overwrite=overwrite)
        text = json.dumps(document(design, [each.name for each in files]), indent=1, allow_nan=False)

        def put(temporary: Path) -> None:
            temporary.write_text(text, encoding="utf-8")

        write_atomically(target, put)
    except BaseException:
        for each in fresh:
            each.unlink(missing_ok=True)
        raise
    return target


def document(design: SessionDesign, files: list[str]) -> dict[str, Any]:
    """What the file of a design says; `files`, the names of those of its tables."""
    told = design.describe()
    tables = [{"file": name, "sha256": each} for name, each in zip(files, told.pop("tables"), strict=True)]
    said: dict[str, Any] = {"schema": SCHEMA, "claim": design.claim}
    said |= {"worst": {words: str(design.worst(words)) for words in WINDOWS}, "tables": tables, **told}
    return said | {"sha256": json_sha256(said)}


def is_design(path: str | Path) -> bool:
    """Whether there is a file that begins as a session design does."""
    try:
        with open_regular(path, field="file", remedy="give the path of a session design") as stream:
            return SCHEMA.rpartition("/")[0].encode() in stream.read(_HEAD)
    except (MechdesignError, OSError):
        return False


@asked
def load_design(path: str | Path) -> SessionDesign:
    """Read a design and its tables, all of which are proved; `verify` also sums its windows and compares its claim.

    Raises: InputError if there is no such file; VerificationError if it, or a table, is damaged, altered or not private
    as claimed.
    """
    return rebuilt(read_document(path), Path(path).parent)


def read_document(path: str | Path) -> dict[str, Any]:
    """The document of a design, of its schema and unaltered since it was sealed; its parts are not looked at."""
    with open_regular(path, field="file", remedy="give the path of a session design") as stream:
        content = read_bytes(stream, Path(path), field="file", most=_MOST_BYTES, unfolds=20)
    try:
        found = read_json(content)
    except (ValueError, RecursionError) as error:
        raise _damaged(f"cannot be read ({error})", path) from error
    if not isinstance(found, dict) or found.get("schema") != SCHEMA:
        raise _damaged("is no session design of this schema", path)
    if set(found) - {"offsets"} != _FIELDS:
        odd = sorted(set(found) ^ _FIELDS)
        raise _damaged(f"misses, or has besides, {', '.join(odd)[:80]}", path)
    if found["sha256"] != json_sha256({name: value for name, value in found.items() if name != "sha256"}):
        raise _damaged("the checksum does not match the content", path)
    return found


def rebuilt(told: Mapping[str, Any], folder: Path) -> SessionDesign:
    """The design of a document, with the tables that it names in `folder`.

    Raises: VerificationError for what contradicts itself, and a table with another SHA-256.
    """
    try:
        tables = [_table(folder, *each) for each in _named(told["tables"])]
        rule = told["rule"]
        kind = rule.get("kind") if isinstance(rule, dict) else None
        if kind not in RULES:
            raise InputError("unknown rule", field="rule", value=kind, remedy=f"use {' or '.join(RULES)}")
        return SessionDesign(
            tables=tables,
            rule=RULES[str(kind)].from_description(rule),
            ticks=told["ticks"],
            movement=movement_from_description(told["movement"]),
            loss=named_loss(told["loss"]),
            offsets=None if "offsets" not in told else _offsets(told["offsets"]),
        )
    except VerificationError:
        raise
    except MechdesignError as error:
        said = f"the file contradicts itself: {error.message}"
        raise VerificationError(said, field=error.field, value=error.value, remedy="use an unaltered file") from error
    except (TypeError, ValueError, KeyError, AttributeError, OverflowError) as error:
        raise _damaged(f"is no complete file ({type(error).__name__}: {error})", folder) from error


def _offsets(held: Any) -> Offsets:
    if not isinstance(held, dict) or set(held) != {"p", "q", "far"} or type(held["far"]) is not int:
        raise _damaged("must be p, q and far", "offsets")
    for name in ("p", "q"):
        if not isinstance(held[name], list) or any(type(value) is not int for value in held[name]):
            raise _damaged("must be whole numbers", name)
    return Offsets(p=tuple(held["p"]), q=tuple(held["q"]), far=held["far"])


def _table(folder: Path, name: str, sha256: object) -> Any:
    table = load(folder / name)
    if table.attrs["sha256"] != sha256:
        raise VerificationError(
            "is another table than the design was made with",
            field="tables",
            value=name,
            remedy="put the files of one design side by side, unaltered",
        )
    return table


def _named(value: object) -> list[tuple[str, object]]:
    """The names of the files and their SHA-256. No file is named twice: every name costs a proof."""
    if not isinstance(value, list) or not 1 <= len(value) <= 1000:
        raise _damaged("must be a list of tables", "tables")
    found = []
    for told in value:
        if not isinstance(told, dict) or set(told) != {"file", "sha256"} or not isinstance(told["file"], str):
            raise _damaged("must be a file and its sha256", "tables")
        if not _NAME.fullmatch(told["file"]) or told["file"] in (".", ".."):
            raise _damaged("must be the name of a file beside the design", ascii(told["file"]))
        found.append((told["file"], told["sha256"]))
    names = [name for name, _ in found]
    if len(set(names)) < len(names):
        raise _damaged("names a table twice", next(name for name in names if names.count(name) > 1))
    return found


def _damaged(problem: str, value: object) -> VerificationError:
    return VerificationError(problem, field="file", value=value, remedy="use an unaltered session design")
