"""Readers of untrusted bytes, fuzzed by coverage: python tests/fuzz/readers.py READER [-max_total_time=600].

Needs atheris, which no extra installs. Marks and checksums are corrected after every change, so that a reader gets
beyond them. A reader refuses by an error of its own; any other exception is a finding. Seeds are honest files, made
here, and the inputs of corpus.json, which reached other branches in earlier runs. Options are libFuzzer's; a folder
that collects new inputs may follow them.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import io
import json
import struct
import sys
import tempfile
import zlib
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
from mechdesign.base import json_fields
from mechdesign.devicemap import device_map as device_map_numbers
from mechdesign.devicemap import files as device_map_file
from mechdesign.errors import MechdesignError
from mechdesign.mechanism import claim as stored
from mechdesign.mechanism import container, schema, storage
from mechdesign.sessions import budget as budgets
from mechdesign.sessions import design_files, ledger, movement, rules
from mechdesign.verification import verify_table

WATCHED = (
    json_fields,
    opening,
    container,
    device_map_file,
    device_map_numbers,
    schema,
    storage,
    stored,
    budgets,
    ledger,
    verify_table,
)
WATCHED += (design_files, movement, rules)
FOLDER = Path(tempfile.mkdtemp())
MARK = b"mechdesign"


def mechanism(content: bytes) -> None:
    """Read a NetCDF file, and verify it if that succeeds."""
    file = FOLDER / "m.nc"
    file.write_bytes(content)
    storage.append_mark(file)
    md.verify(file)


def table(content: bytes) -> None:
    """Check an exported table by the stand-alone verifier."""
    file = FOLDER / ("t.json" if content[:1] == b"{" else "t.csv")
    file.write_bytes(reseal_json(content))
    with contextlib.redirect_stdout(io.StringIO()):
        assert verify_table.main([str(file)]) in (0, 1, 2)


def device_map(content: bytes) -> None:
    """Read a device map: the bytes of its file without the checksum, or its header, a zero byte and its arrays.

    In the second form neither the checksum of zlib stops a change of the arrays, nor the stated size one of the header.
    """
    if not content.startswith(MARK):
        header, _, arrays = content.partition(b"\0")
        content = MARK + struct.pack("<HI", 1, len(header)) + header + zlib.compress(arrays, 1)
    device_map_file.unpack(content + hashlib.sha256(content).digest())


def header_and_arrays(file: bytes) -> bytes:
    """The second form of an input of `device_map`."""
    start = 16 + int.from_bytes(file[12:16], "little")
    return file[16:start] + b"\0" + zlib.decompress(file[start:-32])


def budget(content: bytes) -> None:
    """Read the ledger of a budget."""
    _ = budgets.Budget(write_sealed(content, "b.json")).spent


def design(content: bytes) -> None:
    """Read a session design, in the folder of an honest one with its tables."""
    md.sessions.load_design(write_sealed(content, "day.json"))


def write_sealed(content: bytes, name: str) -> Path:
    """Write a JSON document with its checksum corrected, other bytes unchanged."""
    # Only errors of the content are suppressed: a suppressed AttributeError once hid that no checksum was corrected.
    with contextlib.suppress(ValueError, RecursionError):
        document = json_fields.read_json(content)
        if isinstance(document, dict):
            document.pop("sha256", None)
            document["sha256"] = json_fields.json_sha256(document)
            content = json.dumps(document).encode()
    file = FOLDER / name
    file.write_bytes(content)
    return file


def seeds(name: str) -> list[bytes]:
    """The honest inputs of a reader."""
    exponential = md.baselines.exponential(md.load_problem("line", cells=3))
    if name == "mechanism":
        content = md.save(exponential, FOLDER / "seed.nc").read_bytes()
        return [content[: -len(b"mechdesign sha256") - 32]]
    if name == "table":
        return [md.export(exponential, FOLDER / f"seed.{suffix}").read_bytes() for suffix in ("csv", "json")]
    if name == "design":
        file = FOLDER / "day.json"
        return [
            md.sessions.save_design(design_with_rule(rule), file, overwrite=True).read_bytes()
            for rule in ("clock", "risk")
        ]
    if name == "device_map":
        files = [device_map_file.pack(region(name)) for name in ("eight", "coarse")]
        return [part for file in files for part in (file[:-32], header_and_arrays(file))]
    ledger = budgets.Budget.create(FOLDER / "seed.json", limit=2.0)
    ledger.report(md.Sampler(exponential), 1)
    return [ledger.path.read_bytes()]


def corpus_inputs(name: str) -> list[bytes]:
    """The inputs that reached other branches of a reader in earlier runs."""
    corpus = json.loads(Path(__file__).with_name("corpus.json").read_text())
    return [base64.b64decode(text) for text in corpus.get(name, [])]


READERS: dict[str, tuple[Callable[[bytes], None], tuple[type[BaseException], ...]]] = {
    "mechanism": (mechanism, (MechdesignError,)),
    "table": (table, ()),
    "device_map": (device_map, (MechdesignError,)),
    "budget": (budget, (MechdesignError,)),
    "design": (design, (MechdesignError,)),
}


def watch() -> None:
    """Instrument the functions of `WATCHED`; those that Numba compiles, in other modules, cannot be instrumented."""
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
    for number, seed in enumerate([*seeds(name), *corpus_inputs(name)]):
        (corpus / str(number)).write_bytes(seed)

    def one(content: bytes) -> None:
        with contextlib.suppress(refusals):
            reader(content)

    atheris.Setup([sys.argv[0], "-max_len=65536", *options, str(corpus)], one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
