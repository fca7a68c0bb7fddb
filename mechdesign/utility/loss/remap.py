"""Bayes remap: replace every report by the report with the least posterior expected loss.

Post-processing, so privacy is kept; the expected loss never rises. Source: paper 000, end of section IV
("post-processing the responses of our approach can further improve performance"); Chatzikokolakis et al. 2017.
"""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from mechdesign.base.arguments import asked
from mechdesign.mechanism.sampling.sampler import drawn_rows
from mechdesign.mechanism.table.certificate import max_log_ratio
from mechdesign.mechanism.table.dataset import seal, stored_edges
from mechdesign.mechanism.table.remap import best_reports
from mechdesign.utility.loss.loss import loss_matrix, mechanism_loss

_OF_THE_ORIGINAL = ("lower_bound", "lower_bound_of", "bound_stencil", "objective", "objective_of", "stopped", "sha256")


def remap_targets(mechanism: xr.Dataset) -> NDArray[np.int64]:
    """For every report y the report z that minimises sum_u prior(u) P(y|u) l(u, z), shape (m,); y itself on ties.

    With a claim about positions P(y|u) is that of the centre of u.

    Cost: O(n m^2).
    """
    return _best_replacements(mechanism)[0]


def _best_replacements(mechanism: xr.Dataset) -> tuple[NDArray[np.int64], float]:
    """The targets, and the expected loss with them."""
    return best_reports(drawn_rows(mechanism), mechanism["prior"].values, loss_matrix(mechanism))


@asked
def bayes_remap(mechanism: xr.Dataset) -> xr.Dataset:
    """The remapped mechanism: columns merged, reports that nothing maps to left out; same claim, same edges.

    The effective epsilon is that of the merged columns, which may be smaller. The multipliers and the lower bound
    belong to the original reports and are dropped.
    """
    target = remap_targets(mechanism)
    kept, place = np.unique(target, return_inverse=True)
    mass = np.zeros((mechanism.sizes["secret"], len(kept)), np.uint64)
    np.add.at(mass.T, place, mechanism["mass"].values.T)
    remapped = mechanism.isel(report=kept).drop_vars(["dual", "multiplier"], errors="ignore")
    remapped = remapped.assign(mass=(("secret", "report"), mass, mechanism["mass"].attrs))
    attrs = {key: value for key, value in remapped.attrs.items() if key not in _OF_THE_ORIGINAL}
    attrs["program"] = f"{mechanism.attrs['program']}, remapped"
    remapped.attrs = attrs
    remapped.attrs["expected_loss"] = mechanism_loss(remapped)
    multiple = float(mechanism.attrs["multiple"])
    remapped.attrs["effective_epsilon"] = multiple * min(max_log_ratio(mass, stored_edges(mechanism)).value, 1.0)
    return seal(remapped)


@asked
def remapped_loss(mechanism: xr.Dataset) -> float:
    """Expected loss after `bayes_remap`, in loss units. Cost: O(n m^2)."""
    return _best_replacements(mechanism)[1]
