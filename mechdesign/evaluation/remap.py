"""The Bayes remap: every report is replaced by the one with the smallest posterior expected loss.

It is post-processing, so privacy is kept; the expected loss never rises. Source: Koufogiannis & Pappas 2016, end of
section IV; Chatzikokolakis et al. 2017.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from mechdesign.base.arrays import Indices
from mechdesign.base.validation import validate_call
from mechdesign.evaluation.loss import loss_matrix, mechanism_loss, table_cost
from mechdesign.mechanism.certificate import ROW_SUM, max_log_ratio
from mechdesign.mechanism.hashing import seal
from mechdesign.mechanism.repair import best_reports
from mechdesign.mechanism.schema import stored_edges

_ATTRS_OF_ORIGINAL = ("lower_bound", "lower_bound_of", "objective", "objective_of", "stopped", "sha256")


def _best_replacements(mechanism: xr.Dataset) -> tuple[Indices, float]:
    """For every report y the z (m,) of smallest posterior expected loss, y itself on ties; and the loss after that."""
    return best_reports(mechanism["mass"].values / float(ROW_SUM), table_cost(mechanism, loss_matrix(mechanism)))


@validate_call
def bayes_remap(mechanism: xr.Dataset) -> xr.Dataset:
    """Replace every report by its best estimate under the prior; the claim and its edges stay.

    Columns are merged, and reports that nothing maps to are left out. The multipliers and the lower bound belong to the
    original reports and are dropped.

    Parameters
    ----------
    mechanism : xarray.Dataset
        A table.

    Returns
    -------
    xarray.Dataset, whose expected loss is at most that of the mechanism

    Examples
    --------
    >>> mechanism = md.baselines.exponential(md.load_problem("line", cells=4))
    >>> remapped = md.utility.bayes_remap(mechanism)
    >>> remapped.attrs["expected_loss"] <= mechanism.attrs["expected_loss"]
    True
    """
    target, _ = _best_replacements(mechanism)
    reports, place = np.unique(target, return_inverse=True)
    mass = np.zeros((mechanism.sizes["secret"], len(reports)), np.uint64)
    # Sums of integer columns keep every row sum 2^62, and stay within the ratios of their terms.
    np.add.at(mass.T, place, mechanism["mass"].values.T)
    remapped = mechanism.isel(report=reports).drop_vars(["dual", "multiplier"], errors="ignore")
    remapped = remapped.assign(mass=(("secret", "report"), mass, mechanism["mass"].attrs))
    remapped.attrs = {key: value for key, value in remapped.attrs.items() if key not in _ATTRS_OF_ORIGINAL}
    remapped.attrs["program"] = f"{mechanism.attrs['program']}, remapped"
    remapped.attrs["expected_loss"] = mechanism_loss(remapped)
    # Merged columns may have a smaller ratio than the original ones, never a larger one.
    scale = float(mechanism.attrs["scale"])
    remapped.attrs["ratio"] = scale * min(max_log_ratio(mass, stored_edges(mechanism)).value, 1.0)
    return seal(remapped)


@validate_call
def remapped_loss(mechanism: xr.Dataset) -> float:
    """The expected loss after `bayes_remap`. Cost: O(n m^2).

    Parameters
    ----------
    mechanism : xarray.Dataset
        A table.

    Returns
    -------
    float, in loss units

    Examples
    --------
    >>> mechanism = md.baselines.exponential(md.load_problem("line", cells=4))
    >>> md.utility.remapped_loss(mechanism) <= md.utility.mechanism_loss(mechanism)
    True
    """
    return _best_replacements(mechanism)[1]
