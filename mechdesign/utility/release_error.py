r"""The squared error of one private answer, and of the mean of many: where a bias that one user cannot feel decides.

    one user     E[(y - f(u))^2] = E[Var(y | u)] + E[b(u)^2],   b(u) = E[y | u] - f(u)
    n users      E[(mean y - mean f)^2] = E[(y - f(u))^2] / n + (1 - 1/n) (E b)^2

with users drawn independently from the population. As n grows the mean bias E b is all that stays. A least expected
squared error (programs/optimal/optimal.py) makes every report the posterior mean of f where outputs are fine enough, so
that E b = 0 under the prior it was designed for, and under no other. Source: the variance and bias of a sum of
independent errors; paper 002, section 4.1.1, has it for input perturbation.
"""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from mechdesign.base.arguments import asked
from mechdesign.base.checks import check_whole
from mechdesign.errors import UnsuitableError
from mechdesign.mechanism.table.dataset import probabilities
from mechdesign.setting.objective.priors import check_prior
from mechdesign.setting.problems.release import check_values


def release_bias(mechanism: xr.Dataset, values: ArrayLike) -> NDArray[np.float64]:
    """b(u) (n,) of a release, in the unit of the outputs; values (n,), f at the secrets.

    Raises: InputError for values that do not fit; UnsuitableError where reports are no numbers.
    """
    return _errors(mechanism, values)[0]


@asked
def error_of_mean(
    mechanism: xr.Dataset, values: ArrayLike, users: int = 1, *, population: ArrayLike | None = None
) -> float:
    """Expected squared error of the mean of `users` reports, in squared units of the outputs.

    population (n,): where users come from, by default the prior of the mechanism.
    Raises: as `release_bias`, and InputError for users not positive or a population that is no probability.
    """
    check_whole(users, "users")
    bias, square = _errors(mechanism, values)
    weights = check_prior(mechanism["prior"].values if population is None else population, len(bias))
    return float(weights @ square) / users + (1 - 1 / users) * float(weights @ bias) ** 2


def _errors(mechanism: xr.Dataset, values: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and mean squared error (n,) of the report at every secret."""
    if "report_y" in mechanism.coords or "report_x" not in mechanism.coords:
        raise UnsuitableError(
            "the reports are no output values", field="reports", value="places", remedy="use release_problem"
        )
    table = probabilities(mechanism).values
    offset = mechanism["report_x"].values - check_values(values, len(table))[:, None]
    return (table * offset).sum(axis=1), (table * offset**2).sum(axis=1)
