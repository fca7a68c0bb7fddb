"""client: a mechanism, a device map or a session design as the folder that an app ships, for browsers and Node."""

from __future__ import annotations

import base64
import gzip
import json
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from string import Template
from typing import Any

import xarray as xr

from mechdesign.base.atomic_write import check_target, write_error
from mechdesign.base.log import log_note
from mechdesign.base.registry import Registry
from mechdesign.errors import InputError
from mechdesign.mechanism.claim import certify
from mechdesign.output import sentences
from mechdesign.output.captions import rows_words
from mechdesign.output.memory_claim import memory_claim
from mechdesign.output.packaged import package_file, package_script
from mechdesign.problem.vocabulary import CELLS, CLASSES, Words, words_of
from mechdesign.solvers.result import Progress
from mechdesign.verification.verify import require_certified
from mechdesign.web.packed import pack_mechanism, size_words
from mechdesign.web.rounded import check_bits, round_mechanism

_READ = ("plane.mjs", "frame.mjs", "files.mjs", "table.mjs", "region.mjs", "places.mjs")
_BEFORE = (*_READ, "draw.mjs", "ball.mjs", "ledger.mjs", "memory.mjs", "rest.mjs")
_AFTER = ("client.mjs", "geolocation.mjs", "windows.mjs", "filter.mjs", "rules.mjs", "bundle.mjs", "session.mjs")
PUBLIC = (
    "Client, PrivateGeolocation, ReportError, ReportPositionError, Session, "
    "fileStorage, geolocationOf, memoryStorage, openClient, openSession"
)
_GLOBAL = "mechdesignReports"
_CODE = ("report.d.mts", "report.d.bin.ts")
_FORMER = ("node.mjs", "node.d.mts")  # of folders that earlier versions wrote
_LICENCE = "// Made by `mechdesign export`; the code is under the MIT License, (c) 2026 the mechdesign authors.\n"
_SHIPPED = ("report.bin", "report.mjs", "report.js", *_CODE)
REGION = {"region.map", "sample_region.c", "region_memory.h", "region_location.h"}  # of device maps alone
NAMES = frozenset({*_SHIPPED, "index.html", "README.md", "package.json"} | REGION)
_CELLS = """\
* **The claim is about cells.** A position becomes the cell around it, on a border the higher one. Two people in one
  cell cannot be distinguished at all; two in neighbouring cells only as far as their cells.
* **A remembered report protects only people who repeat their cells alike.** The first report from a cell is drawn, paid
  and kept; from then on the same cell gives the same report, at no cost, so that averaging gains nothing. The claim is
  for traces whose cells are equal at the same pairs of reports; between others, such as one who stays and one who
  leaves, the ratio is infinite. For somebody who moves make a session instead (`mechdesign session design`)."""
_CLASSES = """\
* **The claim is about classes**, any two of them: a report changes the odds between them by no more than it says.
* **A remembered report protects only people who repeat their classes alike.** The first report of a class is drawn,
  paid and kept; from then on the same class gives the same report, at no cost, so that averaging gains nothing. The
  claim is for traces whose classes are equal at the same pairs of reports; between others the ratio is infinite."""
_DEVICE = "browsers tell the position of a device\nonly to pages over https and on localhost, and compute"
_PROJECTED = (
    "Nothing is floating point but the projection, which agrees with PROJ within a micrometre, so that a position\n"
    "closer than that to a border may fall on its other side. "
)
# Phrases of the README that hold for positions only, and their replacements for values and classes.
_POSITION_PHRASES = (
    (_DEVICE, "browsers compute"),
    (_PROJECTED, ""),
    ("`client.reportMetres(east, north)` takes metres from the centre of the map's plane, ", ""),
    (" Degrees that lie on the map only when they are exchanged are refused either way.", ""),
)
_POSITIONS = """\
* **The claim about one report is about positions**, any two of them in the area, however close and on whichever side of
  a border. A position is rounded to 2^-16 of a cell. It draws the row of one of the 3 x 3 cells around it, by chance,
  and the row stays secret.
* **With `remember: "cell"`, the default, the centre of the cell draws instead.** Two people in one cell cannot be
  distinguished. Two on both sides of a border are, as far as their cells.
* **A remembered report protects only people who repeat their cells or visits alike.** Between traces with other
  patterns of repetitions the ratio is infinite. For somebody who moves make a session (`mechdesign session design`)."""


def check_folder(path: str | Path, *, overwrite: bool = False) -> Path:
    """Return the path if nothing exists there, or, with `overwrite`, if it is a folder of client files alone."""
    target = Path(path)
    try:
        mode = target.lstat().st_mode
    except (OSError, ValueError):
        return check_target(target)
    if stat.S_ISREG(mode):
        raise InputError("is a file", field="output", value=target, remedy="name a folder")
    if not stat.S_ISDIR(mode):
        return check_target(target)
    if not overwrite:
        raise InputError("exists already", field="output", value=target, remedy="pass overwrite=True, or another name")
    try:
        entries = list(os.scandir(target))
    except OSError as error:
        raise InputError(
            f"cannot be read ({error.strerror})", field="output", value=target, remedy="name another folder"
        ) from error
    others = sorted(
        entry.name
        for entry in entries
        if entry.name not in {*NAMES, *_FORMER} or not entry.is_file(follow_symlinks=False)
    )
    if others:
        raise InputError(
            "holds other files, which would be lost",
            field="output",
            value=f"{target}: {', '.join(others[:3])}",
            remedy="name another folder, or move them",
        )
    return target


# The folder is written next to its target, then renamed. An old one is replaced only if it has client files alone.
def write_folder(target: Path, contents: Mapping[str, bytes], *, overwrite: bool = False) -> None:
    """Write files (by name, of `NAMES`) and rename their folder to `target`; a failure restores the old folder."""
    beside, old = None, None
    try:
        beside = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part"))
        for name, content in contents.items():
            with (beside / name).open("xb") as stream:
                stream.write(content)
                stream.flush()
                # On disk before the rename: a crash then leaves a complete folder, the old one or the new one.
                os.fsync(stream.fileno())
        # mkdtemp makes a folder for its owner alone; a web server must read it. Only setting the umask returns it.
        umask = os.umask(0)
        os.umask(umask)
        beside.chmod(0o777 & ~umask)
        # Checked again, right before the rename: another process may have written there.
        if check_folder(target, overwrite=overwrite).exists():
            old = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}.", suffix=".old"))
            # mkdtemp finds a free name, but Windows cannot rename onto a folder.
            old.rmdir()
            target.replace(old)
        beside.replace(target)
    except OSError as error:
        if old is not None and old.exists() and not target.exists():
            old.replace(target)
        raise write_error(target, error) from error
    finally:
        # The old folder is removed only if a folder stands at its place.
        for remainder in (beside, old):
            if remainder is not None and (remainder is beside or target.exists()):
                shutil.rmtree(remainder, ignore_errors=True)


def write_client(
    source: Any,
    folder: str | Path,
    *,
    bits: int | None = None,
    overwrite: bool = False,
    on_progress: Callable[[Progress], None] | None = None,
    on_note: Callable[[str], None] | None = None,
) -> Path:
    """Verify a source and write the folder of its client.

    It has report.bin, report.mjs (one module for browsers, bundlers and Node), report.js (a classic script that
    contains the table) and types, package.json and README.md. A mechanism adds index.html, a device map region.map
    and its C files.

    Parameters
    ----------
    source : Dataset, DeviceMap or SessionDesign
        The mechanism, device map or session design.
    folder, overwrite : str or Path, bool
        The folder to write, and permission to replace the folder of a client.
    bits : 32 or 24, optional
        Round the masses of a table to so many bits, and certify it again: the client is several times smaller.
    on_progress : callable
        Called with the progress of verifying a device map.
    on_note : callable
        Called with the loss of rounding and the size of the client, before anything is written.

    Returns
    -------
    Path of the folder

    Raises
    ------
    VerificationError, SizeError, UnsuitableError
        If it is not certified; has over 2^26 masses, or 2^17 places of factors; has unsupported rules or movement.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     client = md.web.write_client(md.baselines.exponential(md.load_problem("line", cells=4)), folder + "/client")
    ...     (client / "report.bin").is_file()
    True
    """
    target = check_folder(folder, overwrite=overwrite)
    name = type(source).__name__
    if name not in CLIENTS:
        raise InputError("has no client", field="source", value=name)
    note = on_note or log_note
    if bits is not None:
        if not isinstance(source, xr.Dataset):
            raise InputError("applies to tables alone", field="bits", value=bits, remedy="export without it")
        check_bits(bits)
        require_certified(source)
        rounded = round_mechanism(source, bits)
        note(rounded.sentence())
        contents = _table_contents(rounded.mechanism, on_progress, bits)
    else:
        contents = CLIENTS[name](source, on_progress)
    note(_size_sentence(contents))
    write_folder(target, contents, overwrite=overwrite)
    return target


def _size_sentence(contents: Mapping[str, bytes]) -> str:
    """The bytes that an app loads, compressed as servers compress them."""
    sizes = {name: len(gzip.compress(contents[name], 9, mtime=0)) for name in ("report.bin", "report.mjs")}
    parts = " and ".join(f"{name} {size_words(size)}" for name, size in sizes.items())
    return f"an app loads {size_words(sum(sizes.values()))}, gzipped: {parts}"


def _table_contents(mechanism: xr.Dataset, _: object, bits: int | None = None) -> dict[str, bytes]:
    checked = require_certified(mechanism)
    stored = checked.file
    assert stored is not None
    assert checked.protection is not None
    about: dict[str, str | float] = {
        "problem": str(mechanism.attrs["problem"]),
        "program": str(mechanism.attrs["program"]),
        "promise": sentences.join_sentences(
            [
                sentences.protection_sentence(checked.protection),
                sentences.limit_sentences(stored),
                sentences.error_sentence(stored),
            ]
        ),
    }
    nouns = words_of(stored.domain)
    drawn = _CLASSES if nouns is CLASSES else _rename_nouns(_CELLS, nouns) if stored.positions is None else _POSITIONS
    claimed = memory_claim("cell", None, stored.domain.unit, positions=stored.positions is not None)
    memory = _rename_nouns(claimed, nouns)
    words = {"claim": str(mechanism.attrs.get("position_claim", stored.claim)), "drawn": drawn, "memory": memory}
    parts, axes = stored.row_parts, stored.domain.dimension
    if parts > 1:
        about["parts"] = parts
    words["rows"] = "" if parts == 1 else f"{rows_words(axes, parts)}, "
    table = pack_mechanism(stored, certify(mechanism), about, bits)
    contents = folder_contents("web/device/README.md", words, table, about, stored.domain.size // parts**axes, nouns)
    return contents | {"index.html": _trial_page()}


def _trial_page() -> bytes:
    """A page to try the folder on, which draws its map as other pages do."""
    view = "\n".join(package_script(f"web/browser/view/{name}.js") for name in ("numbers", "colours", "ground", "map"))
    page = package_file("web/device/index.html").decode()
    page = page.replace("/* page.css */", package_file("web/browser/page.css").decode())
    return page.replace("/* view */", view).encode()


def folder_contents(
    readme: str,
    readme_words: Mapping[str, str],
    table: bytes,
    about: Mapping[str, str | float],
    cells: int,
    nouns: Words = CELLS,
) -> dict[str, bytes]:
    """Files of the folder by name, except its page; `readme_words` fill its README, `nouns` name its secrets."""
    # A classic script contains the table: pages opened from the disk may not fetch files.
    embedded = f'const TABLE = "{base64.b64encode(table).decode()}";\n'
    script = embedded + join_modules("embedded.mjs") + f"globalThis.{_GLOBAL} = {{ {PUBLIC} }};\n"
    words = {
        "promise": str(about["promise"]),
        "size": size_words(len(table)),
        "cells": str(cells),
        "name": package_name(str(about["problem"])),
        **readme_words,
    }
    return {
        "report.bin": table,
        "report.mjs": (_LICENCE + join_modules("home.mjs") + f"export {{ {PUBLIC} }};\n").encode(),
        "report.js": f'{_LICENCE}"use strict";\n(() => {{\n{script}}})();\n'.encode(),
        **{name: package_file(f"web/device/{name}") for name in _CODE},
        "README.md": Template(_rename_nouns(package_file(readme).decode(), nouns)).substitute(words).encode(),
        "package.json": _package(words).encode(),
    }


def _rename_nouns(text: str, nouns: Words) -> str:
    if nouns.truth == "position":
        return text
    for phrase, replacement in _POSITION_PHRASES:
        text = text.replace(phrase, replacement)
    names = {"position": nouns.truth, "positions": nouns.truths, "cell": nouns.one, "cells": nouns.many}
    names |= {"Positions": nouns.truths.capitalize()}
    parts = re.split(r'(```.*?```|`[^`]*`|"[a-z]+"|\$cells)', text, flags=re.DOTALL)  # code stands at odd numbers
    parts[::2] = [re.sub(r"\b(positions?|Positions|cells?)\b", lambda at: names[at[0]], part) for part in parts[::2]]
    # "a cell" has become "a interval".
    return re.sub(r"\b([Aa]) (?=interval)", r"\1n ", "".join(parts))


def join_modules(home: str) -> str:
    """Join the modules without imports and exports; `home` is the one that finds the table."""
    return "\n".join(package_script(f"web/device/{name}") for name in (*_BEFORE, home, *_AFTER))


def package_name(problem: str) -> str:
    """The name of a package for a problem: letters, digits and hyphens."""
    plain = re.sub(r"[^a-z0-9]+", "-", problem.lower()).strip("-")[:100]
    return f"{plain}-reports" if plain else "reports"


def _package(words: dict[str, str]) -> str:
    module = {"types": "./report.d.mts", "default": "./report.mjs"}
    package = {
        "name": words["name"],
        "version": "1.0.0",
        "description": f"Private location reports. {words['promise']}",
        "private": True,
        "type": "module",
        "license": "MIT",
        "exports": {
            ".": module,
            "./report.mjs": module,
            "./report.js": "./report.js",
            "./report.bin": {"types": "./report.d.bin.ts", "default": "./report.bin"},
            "./package.json": "./package.json",
        },
        "files": _SHIPPED,
        "sideEffects": ["./report.js"],
        "engines": {"node": ">=20.16"},
    }
    return json.dumps(package, indent=2) + "\n"


CLIENTS: Registry[Callable[..., dict[str, bytes]]] = Registry(
    "clients", {"Dataset": _table_contents}
)  # by the class of the source: the files of its folder, given it and a callback of progress
