"""summarise: the figures of one solved mechanism, as `solve --json` prints them; proved: that it verifies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import xarray as xr

from mechdesign.errors import DesignError, VerificationError
from mechdesign.mechanism.schema import FACTORED
from mechdesign.mechanism.stored import stored_domain
from mechdesign.mechanism.table.dataset import relative_gap
from mechdesign.setting.objective.losses import LOSSES
from mechdesign.utility.loss.loss import constant_loss
from mechdesign.utility.loss.remap import remapped_loss
from mechdesign.verification.verify import Verification, verify


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
    loss; within_cell_error, the mean loss of snapping to cell centres; peak_mb, the largest resident memory of this
    process in 10^6 bytes; remedy and diagnosis where the program had none.
    """
    attrs = mechanism.attrs
    loss, bound = float(attrs["expected_loss"]), attrs.get("lower_bound")
    objective = attrs.get("objective")
    value = loss if objective is None else float(objective)
    parameters = json.loads(attrs["parameters"])
    factored = attrs["schema"] == FACTORED
    return {
        "problem": attrs["problem"],
        "program": attrs["program"],
        "secrets": mechanism.sizes["secret"],
        "reports": mechanism.sizes["secret" if factored else "report"],
        "claim": checked.claim,
        "loss": loss,
        "objective": None if objective is None else value,
        "objective_of": attrs.get("objective_of"),
        "lower_bound": None if bound is None else float(bound),
        "gap": None if bound is None else relative_gap(value, float(bound), constant_loss(mechanism)),
        "remapped_loss": attrs.get("remapped_loss") if factored else remapped_loss(mechanism),
        "within_cell_error": within_cell_error(mechanism),
        "effective_epsilon": float(attrs["effective_epsilon"]),
        "certified": checked.certified,
        "stopped": attrs.get("stopped"),
        "seconds": seconds,
        "peak_mb": peak_memory_mb(),
        "file": None if file is None else str(file),
        "remedy": parameters.get("remedy"),
        "diagnosis": parameters.get("diagnosis"),
    }


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
