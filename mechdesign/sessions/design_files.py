"""Files of a session design: a JSON document, and next to it the mechanism files of its tables."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import xarray as xr

from mechdesign.base.atomic_write import check_target, write_atomically
from mechdesign.base.files import open_regular, read_bytes
from mechdesign.base.json_fields import json_sha256, read_json
from mechdesign.base.validation import validate_call
from mechdesign.errors import InputError, MechdesignError, VerificationError
from mechdesign.mechanism.storage import load, save
from mechdesign.problem.losses import named_loss
from mechdesign.sessions.design import SessionDesign
from mechdesign.sessions.home_away import HomeAway
from mechdesign.sessions.movement import Movement, RandomWalk, Transitions
from mechdesign.sessions.rules import Clock, Risk, Rule

SCHEMA = "mechdesign/session-design/2"
RULES: dict[str, type[Rule]] = {kind.kind: kind for kind in (Clock, Risk)}
MOVEMENTS: dict[str, type[Movement]] = {kind.kind: kind for kind in (RandomWalk, Transitions, HomeAway)}
WINDOWS = ("1d", "24h")  # whose largest cost a file states
_MOST_BYTES = 1 << 26
_REMEDY = "give the path of a session design"
_HEAD = 64  # bytes within which the schema stands, because it is the first field
_FIELDS = {"schema", "claim", "worst", "tables", "rule", "ticks", "movement", "loss", "sha256"}
_NAME = re.compile(r"[^/\\\x00-\x1f]{1,255}")


# The document: schema; claim, in one sentence; worst, the exact largest cost of a day and of any 24 hours. Then tables,
# the file name (never a path) and sha256 of each; rule, ticks, movement, loss; sha256 over the rest.
@validate_call
def save_design(design: SessionDesign, path: str | Path, *, overwrite: bool = False) -> Path:
    """Write a design, FILE.json, and its tables next to it, FILE-0.nc, FILE-1.nc and so on.

    Parameters
    ----------
    design, path, overwrite : SessionDesign, str or Path, bool
        The design and its file; True to replace existing files.

    Returns
    -------
    Path of the file

    Examples
    --------
    >>> import tempfile
    >>> table = md.baselines.exponential(md.load_problem("line", cells=3))
    >>> design = md.sessions.SessionDesign(tables=[table], rule=md.sessions.Clock(hours=[0, 12]), ticks=2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     md.sessions.save_design(design, folder + "/design.json").name
    'design.json'
    """
    target = check_target(path, overwrite=overwrite)
    files = [target.with_name(f"{target.stem}-{number}.nc") for number in range(len(design.tables))]
    fresh = [file for file in (*files, target) if not file.exists()]
    for file in files:
        check_target(file, overwrite=overwrite)
    # The document is written last: it names its tables by checksum, so a failure before it leaves no design that lacks
    # one. On failure no new file stays.
    try:
        for file, table in zip(files, design.tables, strict=True):
            save(table, file, overwrite=overwrite)
        text = json.dumps(document(design, [file.name for file in files]), indent=1, allow_nan=False)

        def put(temporary: Path) -> None:
            temporary.write_text(text, encoding="utf-8")

        write_atomically(target, put)
    except BaseException:
        for file in fresh:
            file.unlink(missing_ok=True)
        raise
    return target


def document(design: SessionDesign, files: list[str]) -> dict[str, Any]:
    """The document of a design; `files` are the names of its table files."""
    fields = design.describe()
    content = {
        "schema": SCHEMA,
        "claim": design.claim,
        "worst": {words: str(design.worst(words)) for words in WINDOWS},
        **fields,
        "tables": [{"file": name, "sha256": sha256} for name, sha256 in zip(files, fields["tables"], strict=True)],
    }
    return content | {"sha256": json_sha256(content)}


def is_design(path: str | Path) -> bool:
    """True if the file begins like a session design."""
    try:
        with open_regular(path, field="file", remedy=_REMEDY) as stream:
            return SCHEMA.rpartition("/")[0].encode() in stream.read(_HEAD)
    except (MechdesignError, OSError):
        return False


@validate_call
def load_design(path: str | Path) -> SessionDesign:
    """Read a design and its tables, all of which are verified; `md.verify` also sums its windows.

    Parameters
    ----------
    path : str or Path
        A file that `save_design` wrote.

    Returns
    -------
    SessionDesign

    Examples
    --------
    >>> import tempfile
    >>> table = md.baselines.exponential(md.load_problem("line", cells=3))
    >>> design = md.sessions.SessionDesign(tables=[table], rule=md.sessions.Clock(hours=[0, 12]), ticks=2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     md.sessions.load_design(md.sessions.save_design(design, folder + "/design.json")).ticks
    2
    """
    return design_of(read_document(path), Path(path).parent)


def read_document(path: str | Path) -> dict[str, Any]:
    """The document of a design, after checks of its schema, fields and checksum; its parts are not checked."""
    with open_regular(path, field="file", remedy=_REMEDY) as stream:
        text = read_bytes(stream, Path(path), field="file", limit=_MOST_BYTES, expansion=20)
    try:
        content = read_json(text)
    except (ValueError, RecursionError) as error:
        raise _damage_error(f"cannot be read ({error})", path) from error
    if not isinstance(content, dict) or content.get("schema") != SCHEMA:
        raise _damage_error("is not a session design of this schema", path)
    if wrong := set(content) ^ _FIELDS:
        raise _damage_error(f"missing or unexpected fields: {', '.join(sorted(wrong))[:80]}", path)
    if content["sha256"] != json_sha256({name: value for name, value in content.items() if name != "sha256"}):
        raise _damage_error("the checksum does not match the content", path)
    return content


def design_of(content: Mapping[str, Any], folder: Path) -> SessionDesign:
    """The design of a document, with the tables that it names in `folder`."""
    try:
        files = {table["file"]: table["sha256"] for table in content["tables"]}
        if len(files) < len(content["tables"]):
            # Verifying a table takes time: a file that names one 999 times must not cost 999 proofs.
            raise _damage_error("names a table twice", folder)
        rule = content["rule"]
        if rule["kind"] not in RULES:
            raise InputError("unknown rule", field="rule", value=rule["kind"], remedy=f"use {' or '.join(RULES)}")
        return SessionDesign(
            tables=[_table(folder, name, sha256) for name, sha256 in files.items()],
            rule=RULES[rule["kind"]].from_description(rule),
            ticks=content["ticks"],
            movement=movement_from_description(content["movement"]),
            loss=named_loss(content["loss"]),
        )
    except VerificationError:
        raise
    except MechdesignError as error:
        problem = f"the file contradicts itself: {error.message}"
        raise VerificationError(problem, field=error.field, value=error.value) from error
    except (TypeError, ValueError, KeyError, AttributeError, OverflowError) as error:
        raise _damage_error(f"is incomplete ({type(error).__name__}: {error})", folder) from error


def movement_from_description(description: object) -> Movement:
    """The model of an untrusted description made by `Movement.describe`."""
    kind = description.get("kind") if isinstance(description, dict) else None
    if not isinstance(description, dict) or kind not in MOVEMENTS:
        raise InputError("unknown model", field="movement", value=kind, remedy=f"use {' or '.join(MOVEMENTS)}")
    return MOVEMENTS[str(kind)].from_description(description)


def _table(folder: Path, name: str, sha256: object) -> xr.Dataset:
    # The document is untrusted: a path could make a reader open any file.
    if not _NAME.fullmatch(name) or name in (".", ".."):
        raise _damage_error("must be the name of a file in the folder of the design", ascii(name))
    table = load(folder / name)
    if table.attrs["sha256"] != sha256:
        raise _damage_error("is not the table of the design", name)
    return table


def _damage_error(problem: str, value: object) -> VerificationError:
    return VerificationError(problem, field="file", value=value, remedy="use an unaltered session design")
