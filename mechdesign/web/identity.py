"""The identity of a file on its page: name, provenance and citation."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import xarray as xr

from mechdesign.base.streams import visible
from mechdesign.mechanism.build import versions
from mechdesign.mechanism.hashing import file_digest

_CITED = {
    "mechanism": "a certified privacy mechanism",
    "map": "a certified privacy map",
    "sweep": "a certified privacy sweep",
}
_UNPROVED = ("cell_lower_bound", "price")  # parameters that only the run computed: nothing proves them again
CHECKSUM = "sha256sum of the file"  # name of the provenance


def identity_of(dataset: xr.Dataset, kind: str, *, checksum: str | None = None, **beside: str) -> dict[str, Any]:
    """Name, provenance and citation of a file of this kind; checksum: of a file without Dataset."""
    attrs = dataset.attrs
    name, digest = visible(attrs["problem"]), file_digest(dataset) if checksum is None else checksum
    recorded, now = json.loads(attrs["versions"]), json.loads(versions())
    with_ = ", ".join(f"{visible(key)} {visible(value)}" for key, value in recorded.items())
    version = visible(recorded.get("mechdesign", "?"))
    key, short, note = "mechdesign", "", ""
    if digest is not None:
        key, short = f"mechdesign-{digest[:8]}", f", SHA-256 {digest[:16]}…"
        note = f",\n  note = {{SHA-256 {digest}}}"
    return {
        "name": name,
        "kind": kind,
        "provenance": {
            "problem": name,
            **beside,
            "made with": with_,
            "page by": f"mechdesign {now['mechdesign']}",
            CHECKSUM: digest or "not saved to a file",
        },
        "cite": f"{name[:80]} ({kind}{short}), made with mechdesign {version}.",
        "bibtex": (
            f"@misc{{{key},\n  title = {{{_bibtex_title(name)}: {_CITED.get(kind, kind)}}},\n"
            f"  howpublished = {{mechdesign {version}}}{note}\n}}"
        ),
    }


def parameter_words(dataset: xr.Dataset) -> str:
    """The parameters of the problem and of the program, without figures that nothing recomputes."""
    stored = {name: value for name, value in json.loads(dataset.attrs["parameters"]).items() if name not in _UNPROVED}
    both = {**stored.pop("problem_parameters", {}), **stored}
    return ", ".join(f"{visible(key)} {visible(value)}" for key, value in both.items())[:2000]


def _bibtex_title(name: str) -> str:
    """A name in BibTeX: braces and backslashes would end it."""
    return "".join(" " if c in "{}\\%" else c for c in name[:80])


def exact(value: object) -> str:
    """A figure in all its digits."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {part}" for key, part in value.items())
    if isinstance(value, (bool, int, str, np.integer)):
        return str(value).lower() if isinstance(value, bool) else str(value)
    return repr(float(value))  # type: ignore[arg-type]
