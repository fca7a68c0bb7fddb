"""Readers of bytes by anybody, fuzzed by coverage: python tests/fuzz/readers.py READER [-max_total_time=600].

Needs atheris, of no extra. Marks and checksums are made right again after every change, so that what stands behind them
is read. A reader refuses by an error of its own; any other exception is a finding. The seeds are honest files, made
here, and corpus.json, what reached other branches in earlier runs; options are libFuzzer's, and a folder of seeds that
grow may follow them.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import io
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FunctionType

import atheris

sys.path[:0] = [str(Path(__file__).resolve().parent.parent)]

from fixtures.export_mechanisms import reseal_json
from fixtures.random_device_maps import region
from fixtures.session_designs import design_with_rule

import mechdesign as md
from mechdesign.base import files as opening
from mechdesign.base import numbers as descriptions
from mechdesign.devicemap import files as compact_file
from mechdesign.errors import MechdesignError
from mechdesign.mechanism import claim as stored
from mechdesign.mechanism import schema, storage
from mechdesign.sessions import budget as budgets
from mechdesign.sessions import design_files, ledger, movement, rules
from mechdesign.verification import verify_table

WATCHED = (descriptions, opening, compact_file, schema, storage, stored, budgets, ledger, verify_table)
WATCHED += (design_files, movement, rules)
FOLDER = Path(tempfile.mkdtemp())


def mechanism(content: bytes) -> None:
    """A NetCDF file: read, and verified where it can be."""
    file = FOLDER / "m.nc"
    file.write_bytes(content)
    storage.append_mark(file)
    md.verify(file)


def table(content: bytes) -> None:
    """An exported table, by the stand-alone verifier."""
    file = FOLDER / ("t.json" if content[:1] == b"{" else "t.csv")
    file.write_bytes(reseal_json(content))
    with contextlib.redirect_stdout(io.StringIO()):
        assert verify_table.main([str(file)]) in (0, 1, 2)


def compact(content: bytes) -> None:
    """A device map."""
    compact_file.unpack(content + hashlib.sha256(content).digest())


def budget(content: bytes) -> None:
    """The ledger of a budget."""
    _ = budgets.Budget(sealed(content, "b.json")).spent


def design(content: bytes) -> None:
    """A session design, beside the tables of an honest one."""
    md.sessions.load_design(sealed(content, "day.json"))


def sealed(content: bytes, name: str) -> Path:
    """A file of a JSON document with the checksum of what it says; of other bytes as they are."""
    with contextlib.suppress(ValueError, TypeError, AttributeError, RecursionError):
        document = descriptions.read_json(content)
        document["sha256"] = descriptions.json_sha256(
            {key: value for key, value in document.items() if key != "sha256"}
        )
        content = json.dumps(document).encode()
    file = FOLDER / name
    file.write_bytes(content)
    return file


def seeds(name: str) -> list[bytes]:
    """Honest bytes of a reader."""
    made = md.baselines.exponential(md.load_problem("line", cells=3))
    if name == "mechanism":
        content = md.save(made, FOLDER / "seed.nc").read_bytes()
        return [content[: -len(b"mechdesign sha256") - 32]]
    if name == "table":
        return [md.export(made, FOLDER / f"seed.{suffix}").read_bytes() for suffix in ("csv", "json")]
    if name == "design":
        file = FOLDER / "day.json"
        return [
            md.sessions.save_design(design_with_rule(rule), file, overwrite=True).read_bytes()
            for rule in ("clock", "risk")
        ]
    if name == "compact":
        return [compact_file.pack(region(name))[:-32] for name in ("eight", "coarse")]
    ledger = budgets.Budget.create(FOLDER / "seed.json", limit=2.0)
    ledger.report(md.Sampler(made), 1)
    return [ledger.path.read_bytes()]


def kept(name: str) -> list[bytes]:
    """What reached other branches of a reader in earlier runs."""
    corpus = json.loads(Path(__file__).with_name("corpus.json").read_text())
    return [base64.b64decode(text) for text in corpus.get(name, [])]


READERS: dict[str, tuple[Callable[[bytes], None], tuple[type[BaseException], ...]]] = {
    "mechanism": (mechanism, (MechdesignError,)),
    "table": (table, ()),
    "compact": (compact, (MechdesignError,)),
    "budget": (budget, (MechdesignError,)),
    "design": (design, (MechdesignError,)),
}


def watch() -> None:
    """Watch the branches of the functions of `WATCHED`; compiled ones, of other modules, cannot be."""
    for module in WATCHED:
        owners = [module, *(value for value in vars(module).values() if isinstance(value, type))]
        for owner in owners:
            for value in list(vars(owner).values()):
                if isinstance(value, FunctionType) and value.__module__ == module.__name__:
                    atheris.instrument_func(value)


def main() -> None:
    """Fuzz one reader."""
    name, *options = sys.argv[1:]
    reader, refusals = READERS[name]
    watch()
    corpus = FOLDER / "seeds"
    corpus.mkdir()
    for number, seed in enumerate([*seeds(name), *kept(name)]):
        (corpus / str(number)).write_bytes(seed)

    def one(content: bytes) -> None:
        with contextlib.suppress(refusals):
            reader(content)

    atheris.Setup([sys.argv[0], "-max_len=65536", *options, str(corpus)], one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
