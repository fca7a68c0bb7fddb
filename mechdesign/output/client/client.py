"""client: a mechanism as the folder that an app ships, for browsers and Node, without this package."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from string import Template

import xarray as xr

from mechdesign.mechanism.admission import prove
from mechdesign.mechanism.stored import Stored, read
from mechdesign.output.client.folder import check_folder, write_folder
from mechdesign.output.client.packed import packed, size_words
from mechdesign.output.client.promise import promise, what_is_drawn
from mechdesign.output.export.export import handed_over, handed_script
from mechdesign.verification.verify import certified

_BEFORE = ("errors.mjs", "sha256.mjs", "plane.mjs", "table.mjs", "places.mjs", "draw.mjs", "ledger.mjs")
_PUBLIC = "Client, ReportError, memoryStorage, openClient"
_GLOBAL = "mechdesignReports"
_AS_IS = ("node.mjs", "report.d.mts", "node.d.mts", "index.html", "demo.js")
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
    about: dict[str, str | float] = {
        "problem": str(mechanism.attrs["problem"]),
        "program": str(mechanism.attrs["program"]),
        "promise": promise(stored, loss=checked.expected_loss),
    }
    table = packed(stored, prove(mechanism), about)
    write_folder(target, _contents(stored, table, about), overwrite=overwrite)
    return target


def _contents(stored: Stored, table: bytes, about: dict[str, str | float]) -> dict[str, bytes]:
    """Every file of the folder, by name."""
    embedded = f'const TABLE = "{base64.b64encode(table).decode()}";\n'
    script = embedded + joined("embedded.mjs") + f"globalThis.{_GLOBAL} = {{ {_PUBLIC} }};\n"
    words = {
        "claim": str(stored.mechanism.attrs.get("position_claim", stored.claim)),
        "drawn": what_is_drawn(stored),
        "promise": str(about["promise"]),
        "size": size_words(len(table)),
        "cells": str(stored.domain.size),
        "name": package_name(str(about["problem"])),
    }
    return {
        "report.bin": table,
        "report.mjs": (_LICENCE + joined("home.mjs") + f"export {{ {_PUBLIC} }};\n").encode(),
        "report.js": f'{_LICENCE}"use strict";\n(() => {{\n{script}}})();\n'.encode(),
        **{name: handed_over(f"client/{name}") for name in _AS_IS},
        "README.md": Template(handed_over("client/README.md").decode()).substitute(words).encode(),
        "package.json": _package(words).encode(),
    }


def joined(home: str) -> str:
    """The modules in one, without imports and exports; home, where it finds its table."""
    return "\n".join(handed_script(f"client/{name}") for name in (*_BEFORE, home, "client.mjs"))


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
            "./report.bin": "./report.bin",
            "./package.json": "./package.json",
        },
        "files": ["report.bin", "report.mjs", "report.js", "report.d.mts", "node.mjs", "node.d.mts"],
        "sideEffects": ["./report.js"],
        "engines": {"node": ">=20"},
    }
    return json.dumps(told, indent=2) + "\n"
