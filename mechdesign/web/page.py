"""page: a mechanism, a map, a sweep or an estimate as one HTML file that needs no other file and no network."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
import xarray as xr

from mechdesign.base.atomic_write import check_target, write_atomically
from mechdesign.base.registry import Registry
from mechdesign.base.streams import visible
from mechdesign.errors import InputError
from mechdesign.mechanism.schema import MECHANISMS, Schema
from mechdesign.mechanism.storage import load_sealed
from mechdesign.output.export import ResultWriter
from mechdesign.output.packaged import package_file, package_script
from mechdesign.output.sweep import SWEEP
from mechdesign.solvers.result import Progress
from mechdesign.verification.kinds import file_kind
from mechdesign.web.contents import comparison_facts, mechanism_contents, mechanism_facts
from mechdesign.web.curve import curve_facts
from mechdesign.web.page_table import page_table

SUFFIXES = (".html", ".htm")
_DEVICE = ("frame", "table", "region", "plane", "places", "draw", "ball")  # of web/device
_SHARED = (
    "checkFactors, exactly, randomBytes, sha256, forward, backward, readFrame, readRegion, NODES, WEIGHTS, "
    "Places, TableRows, PositionRows, FactorRows, RegionRows"
)  # exports of these modules
_PROOF = (
    *(
        "arrays",
        "packed",
        "exponential",
        "claim",
        "pairs",
        "rises",
        "table",
        "gentle",
        "positions",
        "discs",
        "figures",
        "factors",
        "trees",
    ),
    *("nouns", "squares", "paths", "protection", "sentence", "region", "prove", "open"),
)  # of web/browser/proof, in the order in which they are read
_VIEW = ("numbers", "model", "ground", "colours", "map", "panel", "explore", "region", "main")  # of web/browser/view


@dataclass(frozen=True, kw_only=True)
class Page:
    """The content of a page. facts: texts by name; packed: data that a browser proves, or None.

    facts["note"], where it is, says how the page differs from the file.
    """

    kind: str
    facts: dict[str, Any]
    packed: bytes | None = None


def check_page_target(path: str | Path, *, overwrite: bool = False) -> Path:
    """Return the path if a page can be written there."""
    target = check_target(path, overwrite=overwrite)
    if target.suffix.lower() not in SUFFIXES:
        raise InputError("unknown kind of page", field="page", value=target.name, remedy="use a name ending in .html")
    return target


# The page of a mechanism or a map has its exact integers (contents.py), the program that proves and shows them
# (web/browser), and a policy that loads nothing. The sentences and figures are also plain HTML, for readers without
# scripts. Pages of sweeps and estimates have no scripts.
def save_page(
    result: Any,
    path: str | Path,
    *,
    comparison: Sequence[Mapping[str, Any]] | None = None,
    mechanisms: Sequence[xr.Dataset] = (),
    over: str | Path | None = None,
    title: str | None = None,
    overwrite: bool = False,
    on_progress: Callable[[Progress], None] | None = None,
) -> Path:
    """Write the page of a mechanism, a device map, a sweep or an estimate, atomically.

    Parameters
    ----------
    result : Dataset or DeviceMap
        The subject of the page.
    path, overwrite : str or Path, bool
        An .html file, and permission to replace one.
    comparison : sequence of rows
        Of `md.compare`, to show next to the mechanism.
    mechanisms : sequence of Dataset
        All mechanisms of an estimate's reports: its intervals are then recomputed first.
    over : str or Path
        A GeoJSON file of lines on the map of a mechanism, such as coast and roads (extra `geo`).
    title : str
        A line at the top, such as the name of the place.
    on_progress : callable
        Called with the progress of verifying a device map.

    Returns
    -------
    Path of the file

    Raises
    ------
    VerificationError
        If `md.verify` does not certify the mechanism, or an estimate's figures do not follow from its counts.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     md.web.save_page(md.baselines.exponential(md.load_problem("line", cells=4)), folder + "/line.html").name
    'line.html'
    """
    target = check_page_target(path, overwrite=overwrite)
    page = page_of(result, comparison=comparison, mechanisms=mechanisms, over=over, on_progress=on_progress)
    return write_page(page, target, title)


def write_page(page: Page, target: Path, title: str | None) -> Path:
    """Write a page to a file that was checked."""
    text = _render(page, title)
    write_atomically(target, lambda temporary: temporary.write_text(text, encoding="utf-8", newline="\n"))
    return target


RESULT_PAGES = ResultWriter(suffixes=SUFFIXES, check_target=check_page_target, save=save_page)


def load_shown(path: str | Path) -> Any:
    """Read a file that `save_page` accepts."""
    kind = file_kind(path)
    if kind is not None:
        return kind.load(path)
    return load_sealed(path, *SHOWN.values(), noun="a mechanism, sweep or estimate")


def page_of(
    result: Any,
    *,
    comparison: Sequence[Mapping[str, Any]] | None = None,
    mechanisms: Sequence[xr.Dataset] = (),
    over: str | Path | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Page:
    """The content of `save_page`, with the same errors."""
    schema = visible(result.attrs.get("schema") if isinstance(result, xr.Dataset) else type(result).__name__)
    if schema not in PAGES and schema not in MECHANISMS:
        raise InputError(
            "has no page",
            field="file",
            value=schema,
            remedy="pass a mechanism, a device map, a sweep or an estimate",
        )
    if mechanisms and not schema.startswith("mechdesign/estimate/"):
        raise InputError(
            "are for the page of an estimate",
            field="mechanisms",
            value=len(mechanisms),
            remedy="pass the file of the estimate first",
        )
    if comparison is not None and schema not in MECHANISMS:
        raise InputError("is for mechanisms", field="page", value=schema, remedy="pass a mechanism")
    if over is not None and schema not in MECHANISMS:
        raise InputError("is for mechanisms", field="over", value=schema, remedy="pass a mechanism")
    page = _mechanism_page(result, over) if schema in MECHANISMS else PAGES[schema](result, mechanisms, on_progress)
    compared = None if comparison is None else comparison_facts(comparison, page.facts["loss_unit"], result)
    return replace(page, facts=page.facts | {"comparison": compared})


def _mechanism_page(result: xr.Dataset, over: str | Path | None) -> Page:
    table = page_table(result)
    facts = mechanism_facts(table, result)
    kind, packed = mechanism_contents(table, facts, over)
    return Page(kind=kind, facts=facts, packed=packed)


def _curve_page(curve: xr.Dataset, *_: object) -> Page:
    return Page(kind="curve", facts=curve_facts(curve))


# Of other results than mechanisms, by schema, or by class without a Dataset. Each is called with the result, the
# mechanisms of an estimate, and a callback.
PAGES: Registry[Callable[..., Page]] = Registry("pages", {SWEEP.name: _curve_page})
SHOWN: Registry[Schema] = Registry("schemas of pages", {**MECHANISMS, SWEEP.name: SWEEP})


def proof_script() -> str:
    """The program that proves a page, after the modules of the client that it uses, under the name `device`."""
    # Names of the client's modules may collide with those of the proof: a function scope keeps them apart.
    device = "\n".join(package_script(f"web/device/{name}.mjs") for name in _DEVICE)
    wrapped = f"const device = (() => {{\n{device}\nreturn {{ {_SHARED} }};\n}})();\n"
    return "\n".join([wrapped, *(package_script(f"web/browser/proof/{name}.js") for name in _PROOF)])


def _render(page: Page, title: str | None) -> str:
    style = "\n" + package_file("web/browser/page.css").decode()
    raw = {"style": style}
    scripts: list[str] = []
    if page.packed is not None:
        proof = "\n" + proof_script()
        view = "\n" + "\n".join(package_script(f"web/browser/view/{name}.js") for name in _VIEW)
        raw |= {"data": base64.b64encode(page.packed).decode(), "proof": proof, "view": view}
        scripts = [proof, view]
    return (
        templates()
        .get_template("page.html")
        .render(
            policy=page_policy(style, *scripts),
            kind=page.kind,
            facts=page.facts,
            raw=raw,
            title=None if title is None else visible(title),
        )
    )


def page_policy(style: str, *scripts: str) -> str:
    """The content security policy of a page with these inline texts."""
    # The policy allows these very texts, by hash, and no connection: a page cannot send anything.
    policy = ["default-src 'none'", "img-src data:", "base-uri 'none'", "form-action 'none'"]
    if scripts:
        policy += ["worker-src blob:", f"script-src {' '.join(map(_policy_hash, scripts))} blob:"]
    policy.append(f"style-src {_policy_hash(style)}")
    return "; ".join(policy)


@cache
def templates() -> jinja2.Environment:
    """The HTML templates of this folder."""
    return jinja2.Environment(
        loader=jinja2.PackageLoader("mechdesign.web", "."),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )


def _policy_hash(text: str) -> str:
    """The name of an inline text in a content security policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
