"""Utility studies of mechanisms on one footing: what is compared, its figures as a table, and as a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr

from mechdesign.mechanism.storage.files import check_target, write_atomically
from mechdesign.mechanism.table.dataset import probabilities
from mechdesign.output.tables.matched import family_mechanism, smallest_epsilon
from mechdesign.setting.problems.problem import DesignProblem
from mechdesign.solvers.matching.matched_distance import match_distance
from mechdesign.solvers.matching.matched_level import match_smallest_epsilon
from mechdesign.utility.loss.loss import expected_distance


def at_distance(problem: DesignProblem, names: Sequence[str], distance: float) -> dict[str, xr.Dataset]:
    """Mechanisms of ready families, each at the expected distance in units; `match_distance` has what it raises."""
    return {name: family_mechanism(problem, name, match_distance(problem, name, distance).epsilon) for name in names}


def at_level(problem: DesignProblem, names: Sequence[str], level: float) -> dict[str, xr.Dataset]:
    """Mechanisms of ready families, each at the true level in nats per unit; `match_smallest_epsilon` has what it
    raises.
    """
    return {
        name: family_mechanism(problem, name, match_smallest_epsilon(problem, name, level).epsilon) for name in names
    }


def study_table(
    problem: DesignProblem, comparisons: Mapping[str, tuple[Mapping[str, xr.Dataset], xr.Dataset]]
) -> pd.DataFrame:
    """A line per comparison, mechanism, estimator and dataset size.

    comparisons: by the name of what is equal in it, the mechanisms and what `utility.study.bands` says of them.
    Columns: equal; mechanism, with its figures of `mechanism_figures`; estimator; size; the bands, in `unit`;
    repetitions; seed.
    """
    frames = []
    for equal, (mechanisms, study) in comparisons.items():
        figures = pd.DataFrame({name: mechanism_figures(own, problem) for name, own in mechanisms.items()}).T
        frame = study.to_dataframe().reset_index().merge(figures, left_on="mechanism", right_index=True)
        frame.insert(0, "equal", equal)
        for attribute in ("unit", "repetitions", "seed"):
            frame[attribute] = study.attrs[attribute]
        frames.append(frame)
    return pd.concat(frames, ignore_index=True)


def write_study(table: pd.DataFrame, path: str | Path, *, overwrite: bool = False) -> Path:
    """Write a study as CSV, atomically, figures in all their digits. Raises: as `check_target`."""
    target = check_target(path, overwrite=overwrite)
    write_atomically(target, lambda temporary: table.to_csv(temporary, index=False, lineterminator="\n"))
    return target


def mechanism_figures(mechanism: xr.Dataset, problem: DesignProblem) -> dict[str, float | None]:
    """What a mechanism claims (nats for randomized response, else nats per unit), its true level over all pairs (nats
    per unit), expected distance (units) and the share of reports that are true, the last two under the prior.
    """
    truthful = np.diagonal(probabilities(mechanism).values)
    return {
        "claimed_epsilon": mechanism.attrs["claimed_epsilon"],
        "smallest_epsilon": smallest_epsilon(mechanism, problem),
        "expected_distance": expected_distance(mechanism),
        "truthful": float(problem.prior_array @ truthful),
    }
