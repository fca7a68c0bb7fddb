"""What a page says in words beside its arrays: names, provenance, how to cite, a table for readers without scripts."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import xarray as xr

from mechdesign.base.streams import visible
from mechdesign.base.units import lengths
from mechdesign.mechanism.sampling.sampler import drawn_rows
from mechdesign.mechanism.storage.files import file_checksum
from mechdesign.mechanism.stored import Stored
from mechdesign.mechanism.table.dataset import stored_points, versions
from mechdesign.output.figures import TIMES, length, number
from mechdesign.output.page.contents import saying_of
from mechdesign.output.tables.sweep import columns, sweep_rows
from mechdesign.setting.objective.losses import LOSSES
from mechdesign.utility.loss.loss import loss_matrix
from mechdesign.verification.verify import Verification

_CITED = {"mechanism": "a certified privacy mechanism", "map": "a certified privacy map"}
_CITED |= {"sweep": "a certified privacy sweep"}
_UNPROVED = ("cell_lower_bound", "price")  # of parameters: told by the run that found them alone
CHECKSUM, SEAL = "sha256sum of the file", "seal of its contents"  # names of the provenance
MOST_LISTED = 60  # places in the table for readers without scripts


def mechanism_facts(stored: Stored, checked: Verification) -> dict[str, Any]:
    """Texts of the page of a mechanism; every one is one line that shows what it is."""
    mechanism = stored.mechanism
    attrs, domain = mechanism.attrs, stored.domain
    judged = _unit(stored.loss.unit(domain.unit))
    placed = checked.position_claim is not None
    bound = attrs["lower_bound"] if checked.lower_bound_checked else None
    told = {
        "expected_loss": ("loss between centres" if placed else "expected loss", checked.expected_loss, judged),
        "objective": ("objective", attrs.get("objective"), ""),
        "lower_bound": ("lower bound", bound, judged),
        "ratio": ("ratio", checked.ratio, "of the claim"),
        "violations": ("violations", checked.violations, ""),
        "position_breaches": ("gradients too steep", checked.position_breaches, ""),
        "rebuilt": ("rebuilt from", checked.rebuilt, ""),
        "lower_bound_checked": ("lower bound checked", checked.lower_bound_checked, ""),
        "lower_bound_reason": ("why it was not", checked.lower_bound_reason, ""),
        "worst": ("closest to the claim of rows" if placed else "closest to the claim", checked.worst, ""),
        "row_ratio": ("ratio of rows, which are not drawn alone", checked.row_ratio, "of the claim of rows"),
    }
    said = said_of(mechanism, "mechanism", checked.claim or "", parameters=_parameters(mechanism))
    if checked.position_claim is not None:
        said["position_claim"] = visible(checked.position_claim)
    return said | {
        "sentence": saying_of(stored, checked).sentence,
        "subtitle": f"{_places(stored)} · {visible(attrs['program']).replace('_', ' ')} mechanism",
        "unit": lengths(domain.unit),
        "loss_unit": judged,
        "report_unit": lengths(stored.report_unit),
        "same_places": stored.same_places,
        "domain": json.loads(domain.describe_json())
        | ({} if domain.plane is None else {"plane": domain.plane.words()}),
        "figures": [
            {"key": key, "name": name, "text": exact(value), "unit": unit}
            for key, (name, value, unit) in told.items()
            if value is not None
        ],
        "listed": _listed(stored),
    }


def curve_facts(curve: xr.Dataset) -> dict[str, Any]:
    """Texts of the page of a sweep."""
    attrs, rows = curve.attrs, sweep_rows(curve)
    unit = json.loads(attrs["domain"])["unit"]
    loss = LOSSES.get(attrs["loss"])
    judged = _unit("1" if loss is None else loss.unit(unit))
    first, last = rows[0], rows[-1]
    ends = _ends(attrs["loss"], [float(first["loss"]), float(last["loss"])], judged, unit)
    sentence = f"From {number(first['scale'])} to {number(last['scale'])} times the privacy level, {ends}."
    return said_of(curve, "sweep", "", parameters=_parameters(curve)) | {
        "sentence": visible(sentence),
        "subtitle": f"{attrs['secrets']} secrets · sweep of {len(rows)} levels",
        "unit": lengths(unit),
        "loss_unit": judged,
        "figures": [],
        "listed": {
            "head": [heading for heading, _, _ in columns(first)],
            "rows": [[f"{row[name]:.9g}" for _, name, _ in columns(first)] for row in rows],
            "rest": 0,
        },
    }


def _ends(loss: str, values: list[float], judged: str, unit: str) -> str:
    """What becomes of the best loss from one end of a sweep to the other."""
    if loss in ("squared", "distance"):
        values = [math.sqrt(value) for value in values] if loss == "squared" else values
        high, low = (length(value, unit, up=True) for value in values)
        end = "(root mean square)" if loss == "squared" else "on average"
        return f"the best mechanism's reports go from {high} to {low} off {end}"
    if loss == "zero-one":
        high, low = (number(100 * (1 - value), up=False) for value in values)
        return f"the best mechanism's reports are right with probability {high} to {low} %"
    high, low = (f"{number(value, up=True)} {judged}".strip() for value in values)
    return f"the least loss falls from {high} to {low}"


def said_of(held: xr.Dataset, kind: str, claim: str, *, checksum: str | None = None, **beside: str) -> dict[str, Any]:
    """Name, claim, provenance and how to cite a file of this kind; checksum, that of the file where it is no NetCDF;
    beside, more of the provenance, by name.
    """
    attrs = held.attrs
    name, digest = visible(attrs["problem"]), file_checksum(held) if checksum is None else checksum
    made, now = json.loads(attrs["versions"]), json.loads(versions())
    with_ = ", ".join(f"{visible(key)} {visible(value)}" for key, value in made.items())
    version = visible(made.get("mechdesign", "?"))
    return {
        "name": name,
        "kind": kind,
        "claim": visible(claim),
        "provenance": {
            "problem": name,
            **beside,
            "made with": with_,
            "page by": f"mechdesign {now['mechdesign']}",
            CHECKSUM: digest,
            SEAL: visible(attrs["sha256"]),
        },
        "cite": f"{name[:80]} ({kind}, SHA-256 {digest[:16]}…), made with mechdesign {version}.",
        "bibtex": (
            f"@misc{{mechdesign-{digest[:8]},\n  title = {{{_plain(name)}: {_CITED.get(kind, kind)}}},\n"
            f"  howpublished = {{mechdesign {version}}},\n  note = {{SHA-256 {digest}}}\n}}"
        ),
    }


def _parameters(held: xr.Dataset) -> str:
    """The parameters of the problem, then what the program kept beside them, without figures that nobody recomputes."""
    kept = {name: value for name, value in json.loads(held.attrs["parameters"]).items() if name not in _UNPROVED}
    both = {**kept.pop("knobs", {}), **kept}
    return ", ".join(f"{visible(key)} {visible(value)}" for key, value in both.items())[:2000]


def _plain(name: str) -> str:
    """A name in BibTeX: braces and backslashes would end it."""
    return "".join(" " if c in "{}\\%" else c for c in name[:80])


def _unit(unit: str) -> str:
    return {"1": "", "units^2": "squared units"}.get(unit, unit.replace("^2", "²"))


def exact(value: object) -> str:
    """A figure in all its digits."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {part}" for key, part in value.items())
    if isinstance(value, (bool, int, str, np.integer)):
        return str(value).lower() if isinstance(value, bool) else str(value)
    return repr(float(value))  # type: ignore[arg-type]


def _places(stored: Stored) -> str:
    domain = stored.domain
    if domain.shape is None:
        return f"{domain.size:,} {'places' if domain.kind == 'points' or stored.metric.network else 'secrets'}"
    grid = f" {TIMES} ".join(map(str, domain.shape))
    cell = f" {TIMES} ".join(dict.fromkeys(number(h) for h in domain.cell or ()))
    inside = "" if np.prod(domain.shape) == domain.size else f", {domain.size:,} of them secrets"
    return f"{grid} cells of {cell} {lengths(domain.unit, 1 + (cell != '1'))}{inside}"


def _listed(stored: Stored) -> dict[str, Any]:
    """The likeliest places with prior, level and expected loss."""
    mechanism = stored.mechanism
    prior, points = mechanism["prior"].values, stored_points(mechanism, "secret")
    order = np.argsort(-prior, kind="stable")[:MOST_LISTED]
    lost = _losses(stored, order)
    axes = ["x", "y", "z"][: points.shape[1]]
    level = mechanism["level"].values if "level" in mechanism else None
    head = ["place", *axes, "prior", *(["level"] if level is not None else []), "expected loss"]
    rows = [
        [
            str(u),
            *(f"{x:.6g}" for x in points[u]),
            f"{prior[u]:.3g}",
            *([f"{level[u]:.3g}"] if level is not None else []),
            f"{lost[k]:.6g}",
        ]
        for k, u in enumerate(order.tolist())
    ]
    return {"head": head, "rows": rows, "rest": len(prior) - len(order)}


def _losses(stored: Stored, order: np.ndarray) -> list[float]:
    if stored.factored:
        return [float(x) for x in stored.mechanism["row_loss"].values[order]]
    loss = loss_matrix(stored.mechanism)
    rows = drawn_rows(stored.mechanism, order)
    return [float(x) for x in (rows * loss[order]).sum(axis=1)]
