"""summarise: the figures of one solved mechanism, as `solve --json` prints them; proved: that it verifies;
print_summary: what people read of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import xarray as xr

from mechdesign.errors import DesignError, VerificationError
from mechdesign.mechanism.positions.patches import level_range
from mechdesign.mechanism.stored import read, stored_domain
from mechdesign.mechanism.table.dataset import relative_gap
from mechdesign.output.figures import length, number, percent
from mechdesign.output.sentences import (
    bound_sentence,
    error_sentence,
    joined,
    objective_sentence,
    protects,
    stopped_sentence,
)
from mechdesign.output.terminal.printing import figure, listing, say
from mechdesign.output.terminal.words import worst_prior
from mechdesign.programs.optimal.minimax import Minimax
from mechdesign.setting.metric.euclidean import Euclidean
from mechdesign.setting.objective.losses import LOSSES
from mechdesign.solvers.positions.price import advised_cell
from mechdesign.utility.loss.loss import constant_loss
from mechdesign.utility.loss.remap import remapped_loss
from mechdesign.utility.loss.true_position import position_loss
from mechdesign.verification.verify import Verification, protected, verify


def proved(mechanism: xr.Dataset) -> Verification:
    """The verification of a mechanism that was made here, before it is saved.

    Raises: DesignError where it does not verify. Cost: that of `verify`.
    """
    try:
        checked = verify(mechanism)
    except VerificationError as error:
        raise _unproved(str(error)) from error
    if not checked.certified:
        raise _unproved("; ".join(checked.reasons))
    return checked


def _unproved(reasons: str) -> DesignError:
    return DesignError(
        "what was made does not verify, and is not saved",
        field="mechanism",
        value=reasons,
        remedy="report this problem",
    )


def summarise(mechanism: xr.Dataset, checked: Verification, *, seconds: float, file: Path | None) -> dict[str, Any]:
    """Losses in loss units; objective, where the program names one in objective_of; gap relative to it, else to the
    loss; remapped_gap, of a factored mechanism, relative to the remapped loss, which the lower bound bounds as well;
    within_cell_error, the mean loss of snapping to cell centres; position_loss, to the true position;
    cell_lower_bound, of that loss for mechanisms that are private between centres of cells alone; price, how far the
    objective is above it, relative; method, "columns" where weights of columns stand for the optimal program; peak_mb,
    the largest resident memory of this process in 10^6 bytes; fallback (remedy is the same) and diagnosis where the
    program had no solution; claimed_epsilon and smallest_epsilon in nats per unit, where there is one level: the first
    as `compare` has it, the second what the mechanism truly has.
    """
    attrs = mechanism.attrs
    effective, claimed = checked.effective_epsilon or 0.0, attrs.get("claimed_epsilon")
    asked = read(mechanism).asked
    level = asked.smallest_level if isinstance(asked, Euclidean) else claimed
    loss, bound = float(attrs["expected_loss"]), attrs.get("lower_bound")
    objective = attrs.get("objective")
    value = loss if objective is None else float(objective)
    parameters = json.loads(attrs["parameters"])
    factored = "mass" not in mechanism
    remapped = attrs.get("remapped_loss") if factored else remapped_loss(mechanism)
    return {
        "problem": attrs["problem"],
        "program": attrs["program"],
        "secrets": mechanism.sizes["secret"],
        "reports": mechanism.sizes["secret" if factored else "report"],
        **protected(checked.protection),
        "claim": checked.claim,
        "loss": loss,
        "objective": None if objective is None else value,
        "objective_of": attrs.get("objective_of"),
        "lower_bound": None if bound is None else float(bound),
        "gap": None
        if bound is None
        else relative_gap(value, float(bound), 0.0 if factored else constant_loss(mechanism)),
        "remapped_loss": remapped,
        "remapped_gap": relative_gap(float(remapped), float(bound), 0.0)
        if factored and remapped is not None and bound is not None
        else None,
        "within_cell_error": within_cell_error(mechanism),
        "position_loss": position_loss(mechanism),
        "position_claim": checked.position_claim,
        "cell_lower_bound": parameters.get("cell_lower_bound"),
        "price": parameters.get("price"),
        "method": parameters.get("method"),
        "claimed_epsilon": None if claimed is None else float(claimed),
        "smallest_epsilon": None if level is None else float(level) * effective,
        "effective_epsilon": effective,
        "ratio": checked.ratio,
        "row_ratio": checked.row_ratio,
        "certified": checked.certified,
        "stopped": attrs.get("stopped"),
        "seconds": seconds,
        "peak_mb": peak_memory_mb(),
        "file": None if file is None else str(file),
        "fallback": parameters.get("remedy"),
        "remedy": parameters.get("remedy"),
        "diagnosis": parameters.get("diagnosis"),
    }


def print_summary(
    summary: Mapping[str, Any],
    mechanism: xr.Dataset,
    checked: Verification,
    *,
    verbose: bool = False,
    because: str | None = None,
    limit: float | None = None,
    more: str = "",
) -> None:
    """The document of `summarise`: what is protected, how far off reports are, what the best would be, and `more` after
    it; then its figures, a line each; the claim, the rows of the table, and what was used, if `verbose`.

    because, why no more is protected, for the first line; limit, the seconds that the search had.
    """
    stored, at_position = read(mechanism), summary["position_loss"]
    assert checked.protection is not None
    aimed = summary["objective_of"] is not None and stored.positions is None
    parts = [
        stopped_sentence(summary["stopped"], summary["gap"], limit=limit),
        protects(checked.protection, because=because),
        objective_sentence(stored, summary["objective"], summary["objective_of"])
        if aimed
        else error_sentence(stored, at_position=at_position),
        bound_sentence(stored, at_position=at_position, gap=summary["gap"]),
    ]
    said = joined(parts).sentence
    if summary.get("method") == "columns":
        said += " Made of weights of certified columns: how much better the best is was not found."
    if mechanism.attrs["program"] == Minimax.name and mechanism["multiplier"].values.any():
        more = f"{worst_prior(mechanism)}.{' ' * bool(more)}{more}"
    if summary.get("price") is not None:
        more = f"{_price(summary['price'], mechanism)}{' ' * bool(more)}{more}"
    say(f"{said} Proved in whole numbers.{' ' * bool(more)}{more}")
    last = ("seconds", "peak_mb", "file", "fallback", "diagnosis", "published", "remark")
    hidden = {"certified", "remedy", "chosen", "effective_epsilon", "protects", "within", "factor_within"}
    if not verbose:
        hidden |= {"claim", "position_claim", "row_ratio", "peak_mb", "objective_of"}
        hidden |= {"objective", "loss", "remapped_loss"} if stored.positions is not None else set()
    names = [name for name in summary if name not in last] + [name for name in last if name in summary]
    words = _WORDS if at_position is None else _WORDS | {"loss": "loss between centres"}
    if stored.positions is not None:
        words |= {"loss": "loss of rows", "remapped_loss": "remapped loss of rows"}
    listing(
        {
            words.get(name, name.replace("_", " ")): _figure(name, summary[name])
            for name in names
            if name not in hidden and summary[name] is not None
        }
    )


_WORDS = {"claimed_epsilon": "claimed eps", "smallest_epsilon": "smallest eps", "position_loss": "loss at positions"}
_WORDS |= {"row_ratio": "ratio of rows"}
_UP = (
    "loss",
    "objective",
    "remapped_loss",
    "within_cell_error",
    "position_loss",
    "smallest_epsilon",
    "ratio",
    "row_ratio",
)
_DOWN = ("lower_bound", "cell_lower_bound")
_FORMS = {"seconds": ".1f", "peak_mb": ".0f"}


def _figure(name: str, value: Any) -> str:
    """A figure of the list: losses and levels rounded up to six digits, bounds down, gaps and prices in percent."""
    if name in _FORMS:
        return format(value, _FORMS[name])
    if name in ("gap", "remapped_gap", "price"):
        return percent(value, up=True)
    if isinstance(value, float) and name.removeprefix("alternative_") in (*_UP, *_DOWN):
        return number(value, up=name not in _DOWN, digits=6)
    return figure(value)


def _price(price: float, mechanism: xr.Dataset) -> str:
    """What privacy between positions costs beside privacy between centres, and a cell at which it costs 1 %."""
    if price <= 0:
        return "Between any two positions instead of centres of cells, that costs nothing."
    said = f"Between any two positions instead of centres of cells, that costs at most {percent(price, up=True)}"
    domain, metric = stored_domain(mechanism), read(mechanism).asked
    assert domain.cell is not None and metric is not None
    low, high = level_range(metric)
    cell = advised_cell(domain.cell[0], price, varies=low < high)
    return f"{said}." if cell is None else f"{said}, and about 1 % with cells of {length(cell, domain.unit, digits=3)}."


def within_cell_error(mechanism: xr.Dataset) -> float | None:
    """Mean loss of moving a uniform position in a cell to its centre: h^2 / 6 for squared loss on square cells."""
    loss = LOSSES.get(mechanism.attrs["loss"])
    domain = stored_domain(mechanism)
    return None if loss is None else loss.within_cell(domain)


def peak_memory_mb() -> float | None:
    """Largest resident memory of this process so far, in 10^6 bytes; None where the system does not tell."""
    try:
        import resource
    except ImportError:
        return None
    import sys

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak * 1024 / 1e6
