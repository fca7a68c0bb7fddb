r"""The linear estimator of shares: unbiased for every truth, with a known variance at every N.

    (1)  estimate   sum_y f(y) a(y),    f(y) = the share of report y among N,
    (2)  a = D^-1 P^T (P D^-1 P^T)^+ g

g (n,) marks the secrets of an area, P (n, m) is the channel, D the diagonal of a law of reports that is fixed before
the reports. Where g is in the range of P, P a = g: the expectation is p^T P a = p^T g for every p, and the variance is
[sum q a^2 - (p^T g)^2] / N with q = P^T p. Among all a with P a = g this one has the least variance where q = D.
Where g is not in the range of P the share is not identifiable.
Source: generalized least squares (Gauss-Markov); the bound of the bias is ours.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mechdesign.base.arrays import Floats, Mask, Matrix, Vector
from mechdesign.surveys.channel import Channel
from mechdesign.surveys.information import READABLE

TOLERANCE = 1e-6  # of max |P a - g|, up to which a share counts as identifiable
UNIFORM = 0.01  # share of the uniform law in D: limits any weight to 100 times its value at the uniform truth


@dataclass(frozen=True, kw_only=True, eq=False)
class Weights:
    """a (M, K), a column an area; bias (K,), max |P a - g|; law (M,), the D; lost, the number of lost directions."""

    values: Matrix
    bias: Vector
    law: Vector
    lost: int

    @property
    def identifiable(self) -> Mask:
        """True for each share that reports identify, (K,)."""
        return self.bias <= TOLERANCE


def law_beforehand(channel: Channel, prior: Vector) -> Vector:
    """The law of reports (M,) that fixes D: 99 % of the prior's, 1 % of the uniform distribution's."""
    n = channel.secrets
    return ((1 - UNIFORM) * prior + UNIFORM / n) @ channel.table


def linear_weights(channel: Channel, wanted: Matrix, prior: Vector) -> Weights:
    """The weights of wanted shares g (n, K), for a prior (n,) that was fixed before the reports."""
    # (2), by the eigenvalues of P D^-1 P^T.
    table, law = channel.table, law_beforehand(channel, prior)
    scaled = table / np.sqrt(law)
    information = scaled @ scaled.T
    values, vectors = np.linalg.eigh(information)
    # Directions below this are noise of the eigenvalues; inverting them would amplify rounding to 10^10.
    transmitted = values > READABLE * values[-1]
    basis = vectors[:, transmitted] / values[transmitted]

    def solve(right: Floats) -> Floats:
        return (table / law).T @ (basis @ (vectors[:, transmitted].T @ right))

    weights = solve(wanted)
    # One step of iterative refinement: the pseudo-inverse of a nearly singular channel loses digits.
    weights += solve(wanted - table @ weights)
    # Computed from the weights as they are, this bounds the bias however they were found; intervals add it.
    bias = abs(table @ weights - wanted).max(axis=0)
    return Weights(values=weights, bias=bias, law=law, lost=int((~transmitted).sum()))
