"""What a block of rows of a factored mechanism contributes: exact row sums, expected losses, posterior moments.

Row sums are integers and enter the certificate; losses and moments are floating point and enter figures only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from mechdesign.errors import InputError, UnsuitableError
from mechdesign.mechanism.factored.certificate import KERNEL_BITS, Factors
from mechdesign.setting.metric.integer_metric import BLOCK
from mechdesign.setting.objective.losses import APART, LENGTH, LOSSES, Loss
from mechdesign.setting.space.domain import CLOSE

_LOW = (1 << 64) - 1


@dataclass(frozen=True, kw_only=True, eq=False)
class LossData:
    """Factors with what their reports are judged by.

    secrets (n, a) and reports (c, a), coordinates of the secrets and of the cell that each column reports, in units of
    length; prior (n,); loss, one with a code.
    Raises: UnsuitableError for a loss without a code, such as a table, and for coordinates that are all below 2^-400;
        InputError where there are not as many reports as columns.
    """

    factors: Factors
    secrets: NDArray[np.float64]
    reports: NDArray[np.float64]
    prior: NDArray[np.float64]
    loss: Loss

    def __post_init__(self) -> None:
        if self.loss.code is None:
            raise UnsuitableError(
                "a factored mechanism computes its loss from coordinates",
                field="loss",
                value=self.loss.name,
                remedy="use "
                + ", ".join(name for name, loss in LOSSES.items() if loss.code is not None)
                + ", or a grid small enough for a table",
            )
        if not np.abs(self.secrets).max() >= CLOSE:
            raise UnsuitableError(
                "a factored mechanism sums squares of coordinates, which lose their digits below 2^-400",
                field="points",
                value=f"{np.abs(self.secrets).max()}",
                remedy="use a smaller unit",
            )
        if self.reports.shape != (self.factors.size, self.secrets.shape[1]):
            raise InputError(
                "must be one place for every column",
                field="target",
                value=f"{self.reports.shape}, {self.factors.size} columns",
                remedy="give every column one report",
            )


@dataclass(frozen=True, kw_only=True, eq=False)
class RowBlock:
    """Rows start..stop: row_sum (b, 2), high and low 64 bits of S(u); loss (b,), expected loss from each secret;
    moments (c, 1 + a), sums over u of prior(u) P(k|u) times 1 and the coordinates, from the mean of the secrets.
    """

    row_sum: NDArray[np.uint64]
    loss: NDArray[np.float64]
    moments: NDArray[np.float64]

    def as_arrays(self) -> dict[str, NDArray[Any]]:
        """The fields by name."""
        return {"row_sum": self.row_sum, "loss": self.loss, "moments": self.moments}


def row_block(judged: LossData, start: int, stop: int) -> RowBlock:
    """The contribution of the secrets start..stop. Cost: the distances from each, and 5 ns for each column."""
    factors = judged.factors
    centre = judged.secrets.mean(axis=0)
    kernel = factors.kernel * 2.0**-KERNEL_BITS
    weight = factors.weight.astype(float)
    sums: list[int] = []
    losses = np.zeros(stop - start)
    moments = np.zeros((factors.size, 1 + judged.secrets.shape[1]))
    for first in range(start, stop, BLOCK):
        own = slice(first, min(first + BLOCK, stop))
        distances = factors.distances(np.arange(own.start, own.stop))
        exact = factors.row_sums(distances)
        total = np.array([s * 2.0**-KERNEL_BITS for s in exact])
        _add_losses(
            distances, kernel, weight, judged.reports, judged.secrets[own], judged.loss.code,
            losses[own.start - start : own.stop - start],
        )  # fmt: skip
        losses[own.start - start : own.stop - start] /= total
        _add_moments(distances, kernel, judged.prior[own] / total, judged.secrets[own] - centre, moments)
        sums += exact
    moments *= weight[:, None]
    return RowBlock(row_sum=split_words(sums), loss=losses, moments=moments)


def split_words(numbers: list[int]) -> NDArray[np.uint64]:
    """Integers under 2^128 as high and low words (n, 2)."""
    return np.array([[s >> 64, s & _LOW] for s in numbers], np.uint64).reshape(-1, 2)


def join_words(words: NDArray[np.uint64]) -> list[int]:
    """The integers of `split_words`."""
    return [(high << 64) + low for high, low in words.tolist()]


def rounded_words(words: NDArray[np.uint64]) -> NDArray[np.float64]:
    """The integers of `split_words` as doubles (n,)."""
    return np.asarray(words[:, 0] * 2.0**64 + words[:, 1])


@numba.njit(cache=True, nogil=True)
def _add_losses(distances, kernel, weight, reports, secrets, code, total):  # type: ignore[no-untyped-def]
    """Add the sum over columns of weight * kernel * loss to `total`, per source."""
    for p in range(distances.shape[0]):
        for b in range(distances.shape[1]):
            square, apart = 0.0, False
            for axis in range(secrets.shape[1]):
                square += (secrets[b, axis] - reports[p, axis]) ** 2
                apart |= secrets[b, axis] != reports[p, axis]
            loss = square
            if code == LENGTH:
                loss = np.sqrt(square)
            elif code == APART:
                loss = 1.0 if apart else 0.0
            total[b] += weight[p] * kernel[distances[p, b]] * loss


@numba.njit(cache=True, nogil=True)
def _add_moments(distances, kernel, share, secrets, moments):  # type: ignore[no-untyped-def]
    """Add share * kernel times (1, coordinates), summed over sources, to `moments` per column."""
    for p in range(distances.shape[0]):
        for b in range(distances.shape[1]):
            mass = share[b] * kernel[distances[p, b]]
            moments[p, 0] += mass
            for axis in range(secrets.shape[1]):
                moments[p, 1 + axis] += mass * secrets[b, axis]
