"""client: a mechanism, a compact map or a session design as the folder that an app ships, for browsers and Node."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from string import Template

import xarray as xr

from mechdesign.errors import VerificationError
from mechdesign.mechanism.admission import prove
from mechdesign.mechanism.compact.file import load_compact
from mechdesign.mechanism.compact.file import packed as packed_map
from mechdesign.mechanism.compact.map import CompactMap
from mechdesign.mechanism.protection import protection_of_map
from mechdesign.mechanism.session.design import SessionDesign
from mechdesign.mechanism.session.design_files import load_design
from mechdesign.mechanism.stored import read
from mechdesign.output.client.folder import check_folder, write_folder
from mechdesign.output.client.packed import packed, size_words
from mechdesign.output.client.packed_session import packed_session
from mechdesign.output.client.promise import promise, what_is_drawn
from mechdesign.output.client.region_map import region_map, room
from mechdesign.output.export.export import handed_over, handed_script
from mechdesign.output.sentences import protects
from mechdesign.solvers.kernels.progress import Reported
from mechdesign.verification.verify import certified, verify

_READ = ("errors.mjs", "sha256.mjs", "plane.mjs", "table.mjs", "region.mjs", "places.mjs")
_BEFORE = (*_READ, "draw.mjs", "ball.mjs", "due.mjs", "kept.mjs", "ledger.mjs")
_AFTER = ("client.mjs", "windows.mjs", "steps.mjs", "filter.mjs", "rules.mjs", "moved.mjs", "bundle.mjs", "session.mjs")
PUBLIC = "Client, ReportError, Session, memoryStorage, openClient, openSession"
_GLOBAL = "mechdesignReports"
_CODE = ("node.mjs", "report.d.mts", "node.d.mts", "report.d.bin.ts")
_TRIAL = ("index.html", "demo.js")
_LICENCE = "// Made by `mechdesign client`; the code is under the MIT License, (c) 2026 the mechdesign authors.\n"


def write_client(mechanism: xr.Dataset, folder: str | Path, *, overwrite: bool = False) -> Path:
    """Write the folder: report.bin, report.mjs and node.mjs (modules), report.js (a classic script that contains the
    table), types, package.json, README.md, and index.html, a page to try it on.

    The mechanism is verified first. The folder is whole or not there.
    Raises: VerificationError for a mechanism that `verify` does not certify; InputError for a folder that exists
        without `overwrite`, or that holds other files; SizeError for more than 2^26 masses, or 2^17 places of factors.
    Cost: that of `verify`, and 0.1 microseconds a mass.
    """
    target = check_folder(folder, overwrite=overwrite)
    checked = certified(mechanism)
    stored = read(mechanism)
    assert checked.protection is not None
    about: dict[str, str | float] = {
        "problem": str(mechanism.attrs["problem"]),
        "program": str(mechanism.attrs["program"]),
        "promise": promise(stored, checked.protection),
    }
    table = packed(stored, prove(mechanism), about)
    words = {
        "claim": str(mechanism.attrs.get("position_claim", stored.claim)),
        "drawn": what_is_drawn(stored),
    }
    contents = _contents("client/README.md", words, table, about, stored.domain.size)
    contents |= {name: handed_over(f"client/{name}") for name in _TRIAL}
    write_folder(target, contents, overwrite=overwrite)
    return target


def write_session(design: SessionDesign | str | Path, folder: str | Path, *, overwrite: bool = False) -> Path:
    """Write the folder of a session design, or of its file: as `write_client` has it, without a page to try it on.

    The design is verified first. Raises: as `write_client`; UnsuitableError for a rule, or a model of movement, that
    the client does not follow.
    """
    target = check_folder(folder, overwrite=overwrite)
    proved = verify(design)
    if not proved.certified:
        raise VerificationError(
            "is not certified", field="design", value=proved.reasons[0], remedy="use an unaltered session design"
        )
    given = design if isinstance(design, SessionDesign) else load_design(design)
    worst = {words: f"{float(given.worst(words)):.4g}" for words in ("1d", "24h")}
    promised = f"A calendar day costs at most {worst['1d']}, any 24 hours at most {worst['24h']}, whatever is reported."
    about: dict[str, str | float] = {"problem": str(given.tables[0].attrs["problem"]), "promise": promised}
    table = packed_session(given, about)
    words = {"claim": given.claim, "promise": promised, "ticks": str(given.ticks), "rule": given.rule.kind}
    words |= {"day": str(given.worst("1d")), "any": str(given.worst("24h"))}
    contents = _contents("client/SESSION.md", words, table, about, given.domain.size)
    write_folder(target, contents, overwrite=overwrite)
    return target


def write_region(
    region: CompactMap | str | Path,
    folder: str | Path,
    *,
    overwrite: bool = False,
    on_progress: Callable[[Reported], None] | None = None,
) -> Path:
    """Write the folder of a compact map, or of its file: as `write_client` has it, with region.map and sample_region.c
    for devices without JavaScript, without a page to try it on.

    The map is verified first; on_progress is called with where that stands. Raises: as `write_client`.
    Cost: that of `verify`, and 1 microsecond a place.
    """
    target = check_folder(folder, overwrite=overwrite)
    compact = region if isinstance(region, CompactMap) else load_compact(region)
    certified(compact, on_progress=on_progress)
    write_folder(target, region_contents(compact), overwrite=overwrite)
    return target


def region_contents(compact: CompactMap) -> dict[str, bytes]:
    """Every file of the folder of a compact map, by name. Nothing is verified."""
    table, flat = packed_map(compact), region_map(compact)
    frame = compact.shape[0] * compact.shape[1] - compact.secrets
    words = {
        "claim": compact.claim,
        "promise": protects(protection_of_map(compact)).sentence,
        "flat": size_words(len(flat)),
        "frame": str(frame),
        "room": size_words(room(compact)),
    }
    contents = _contents("client/REGION.md", words, table, compact.header()["about"], compact.secrets)
    return contents | {"region.map": flat, "sample_region.c": handed_over("sample_region.c")}


def _contents(
    readme: str, own: Mapping[str, str], table: bytes, about: Mapping[str, str | float], cells: int
) -> dict[str, bytes]:
    """Every file of the folder, by name, but a page; own, the words of its README that no other has."""
    embedded = f'const TABLE = "{base64.b64encode(table).decode()}";\n'
    script = embedded + joined("embedded.mjs") + f"globalThis.{_GLOBAL} = {{ {PUBLIC} }};\n"
    words = {
        "promise": str(about["promise"]),
        "size": size_words(len(table)),
        "cells": str(cells),
        "name": package_name(str(about["problem"])),
        **own,
    }
    return {
        "report.bin": table,
        "report.mjs": (_LICENCE + joined("home.mjs") + f"export {{ {PUBLIC} }};\n").encode(),
        "report.js": f'{_LICENCE}"use strict";\n(() => {{\n{script}}})();\n'.encode(),
        **{name: handed_over(f"client/{name}") for name in _CODE},
        "README.md": Template(handed_over(readme).decode()).substitute(words).encode(),
        "package.json": _package(words).encode(),
    }


def joined(home: str) -> str:
    """The modules in one, without imports and exports; home, where it finds its table."""
    return "\n".join(handed_script(f"client/{name}") for name in (*_BEFORE, home, *_AFTER))


def package_name(problem: str) -> str:
    """The name of a package for a problem: letters, digits and hyphens."""
    plain = re.sub(r"[^a-z0-9]+", "-", problem.lower()).strip("-")[:100]
    return f"{plain}-reports" if plain else "reports"


def _package(words: dict[str, str]) -> str:
    entry = {"types": "./report.d.mts", "node": {"types": "./node.d.mts", "default": "./node.mjs"}}
    told = {
        "name": words["name"],
        "version": "1.0.0",
        "description": f"Private location reports. {words['promise']}",
        "private": True,
        "type": "module",
        "license": "MIT",
        "exports": {
            ".": {"node": entry["node"], "types": entry["types"], "default": "./report.mjs"},
            "./browser": {"types": "./report.d.mts", "default": "./report.mjs"},
            "./report.mjs": {"types": "./report.d.mts", "default": "./report.mjs"},
            "./report.js": "./report.js",
            "./report.bin": {"types": "./report.d.bin.ts", "default": "./report.bin"},
            "./package.json": "./package.json",
        },
        "files": ["report.bin", "report.mjs", "report.js", "node.mjs", "report.d.mts", "node.d.mts", "report.d.bin.ts"],
        "sideEffects": ["./report.js"],
        "engines": {"node": ">=20"},
    }
    return json.dumps(told, indent=2) + "\n"
