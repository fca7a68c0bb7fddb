"""page: a mechanism, a map, a sweep or an estimate as one HTML file that needs nothing else, not even a network.

The file carries the data in exact integers (contents.py), the program that proves and shows them (handover/page), and a
policy that lets it load nothing. Its sentence and figures stand in the HTML too, for readers without scripts; a browser
that runs them takes every figure from the data, and says what it proved of them.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jinja2
import xarray as xr

from mechdesign.base.streams import visible
from mechdesign.errors import InputError
from mechdesign.mechanism.compact.file import is_compact, load_compact
from mechdesign.mechanism.compact.map import CompactMap
from mechdesign.mechanism.schema import MECHANISMS
from mechdesign.mechanism.storage.files import check_target, load_sealed, write_atomically
from mechdesign.mechanism.stored import contradiction, read
from mechdesign.mechanism.table.dataset import checksum_faults
from mechdesign.output.export.export import handed_over, handed_script
from mechdesign.output.page.contents import curve_contents, mechanism_contents
from mechdesign.output.page.estimate import estimate_contents
from mechdesign.output.page.facts import curve_facts, mechanism_facts
from mechdesign.output.page.region import region_contents
from mechdesign.output.tables.compare import Row
from mechdesign.output.tables.sweep import SWEEP
from mechdesign.solvers.kernels.progress import Reported
from mechdesign.utility.population.shares import ESTIMATE
from mechdesign.verification.verify import certified

SUFFIXES = (".html", ".htm")
_PROOF = (
    *("arrays", "checksum", "exponential", "fractions", "claim", "pairs", "table", "positions", "figures", "factors"),
    *("protection", "sentence", "counted", "shares", "rows", "region", "prove", "open"),
)  # of handover/page/proof, in the order in which they are read
_REGION = ("errors", "sha256", "table", "region", "ball", "plane", "places")  # of handover/client, in pages of maps
_VIEW = (
    "numbers",
    "model",
    "ground",
    "colours",
    "map",
    "compare",
    "curve",
    "bars",
    "shares",
    "panel",
    "explore",
    "region",
    "main",
)  # of handover/page/view


def check_page_target(path: str | Path, *, overwrite: bool = False) -> Path:
    """The path, if a page can be written there. Raises: InputError."""
    target = check_target(path, overwrite=overwrite)
    if target.suffix.lower() not in SUFFIXES:
        raise InputError("unknown kind of page", field="page", value=target.name, remedy="use a name ending in .html")
    return target


def save_page(
    result: xr.Dataset | CompactMap,
    path: str | Path,
    *,
    comparison: Sequence[Row] | None = None,
    mechanisms: Sequence[xr.Dataset] = (),
    overwrite: bool = False,
    on_progress: Callable[[Reported], None] | None = None,
) -> Path:
    """Write the page of a mechanism, a table or a factored one, of a compact map, a sweep or an estimate, atomically.

    Parameters: comparison, rows of `compare` to show beside the mechanism; mechanisms, of an estimate, all that made
        its reports: with them the page proves the shares too, without them its seal alone; on_progress, called with
        where the verification of a compact map stands.
    Raises: InputError for another suffix, a file that exists, another Dataset, factors of more than 50,000 places, and
        mechanisms that did not make the reports; VerificationError for a mechanism that `verify` does not certify, a
        sweep or an estimate that was altered, and one whose intervals do not follow from its counts.
    Cost: that of `verify`, and 12 bytes a mass before compression.
    """
    target = check_page_target(path, overwrite=overwrite)
    text = page_text(result, comparison=comparison, mechanisms=mechanisms, on_progress=on_progress)
    write_atomically(target, lambda temporary: _write(text, temporary))
    return target


def load_shown(path: str | Path) -> xr.Dataset | CompactMap:
    """Read a file that `save_page` shows: a mechanism, a compact map, a sweep or an estimate. Raises what `load` and
    `load_compact` raise.
    """
    if is_compact(path):
        return load_compact(path)
    return load_sealed(path, *MECHANISMS.values(), SWEEP, ESTIMATE, what="a mechanism, sweep or estimate")


def page_text(
    result: xr.Dataset | CompactMap,
    *,
    comparison: Sequence[Row] | None = None,
    mechanisms: Sequence[xr.Dataset] = (),
    on_progress: Callable[[Reported], None] | None = None,
) -> str:
    """The HTML of `save_page`. Raises: as `save_page`."""
    if isinstance(result, CompactMap):
        if comparison is not None or mechanisms:
            raise InputError("is not for a map", field="page", value="compact map", remedy="give the map alone")
        contents, packed = region_contents(result, certified(result, on_progress=on_progress))
        return _rendered(contents, packed, contents["facts"])
    schema = result.attrs.get("schema")
    if mechanisms and schema != ESTIMATE.name:
        raise InputError(
            "are for the page of an estimate",
            field="mechanisms",
            value=len(mechanisms),
            remedy="give the file of the estimate first",
        )
    if schema in (SWEEP.name, ESTIMATE.name) and (faults := checksum_faults(result)):
        raise InputError("was altered", field="sha256", value=faults[0], remedy="use an unaltered file")
    if schema in MECHANISMS:
        checked, stored = certified(result), read(result)
        (contents, packed), facts = mechanism_contents(stored, checked, comparison), mechanism_facts(stored, checked)
    elif schema == SWEEP.name and comparison is None:
        (contents, packed), facts = curve_contents(result), curve_facts(result)
    elif schema == ESTIMATE.name and comparison is None:
        try:
            contents, packed, facts = estimate_contents(result, mechanisms)
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise contradiction(error) from error
    else:
        raise InputError(
            "has no page",
            field="file",
            value=visible(schema),
            remedy="give a mechanism, a sweep or an estimate, as solve, sweep and estimate do",
        )
    return _rendered(contents | {"facts": facts}, packed, facts)


def _write(text: str, path: Path) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")


def proof_script(kind: str = "table") -> str:
    """The program that proves a page of a kind; of a region with the client that reads and draws, under one name."""
    script = "\n".join(map(handed_script, ("client/sha256.mjs", *(f"page/proof/{name}.js" for name in _PROOF))))
    if kind != "region":
        return script
    client = "\n".join(handed_script(f"client/{name}.mjs") for name in _REGION)
    return f"{script}\nconst regionClient = (() => {{\n{client}\nreturn {{ readRegion, RegionRows, Places }};\n}})();\n"


def _rendered(contents: dict[str, Any], packed: bytes, facts: dict[str, Any]) -> str:
    data, arrays = _harmless(contents), base64.b64encode(packed).decode()
    proof = "\n" + proof_script(contents["kind"])
    view = "\n" + "\n".join(handed_script(f"page/view/{name}.js") for name in _VIEW)
    style = "\n" + handed_over("page/page.css").decode()
    policy = [
        "default-src 'none'", "img-src data:", "worker-src blob:", "base-uri 'none'", "form-action 'none'",
        f"script-src {_hashed(proof)} {_hashed(view)} blob:", f"style-src {_hashed(style)}",
    ]  # fmt: skip
    loader = jinja2.PackageLoader("mechdesign.output.page", ".")
    template = jinja2.Environment(
        loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    ).get_template("page.html")
    return template.render(
        policy="; ".join(policy),
        seal=hashlib.sha256(f"{data}\n{arrays}".encode()).hexdigest(),
        contents=contents,
        facts=facts,
        raw={"data": data, "arrays": arrays, "proof": proof, "view": view, "style": style},
    )


def _harmless(contents: dict[str, Any]) -> str:
    """JSON that ends no script element and starts no comment: angle brackets and ampersands as escapes, ASCII alone."""
    text = json.dumps(contents, allow_nan=False, separators=(",", ":"))
    for letter in "<>&":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def _hashed(text: str) -> str:
    """What a content security policy names an inline text by."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
