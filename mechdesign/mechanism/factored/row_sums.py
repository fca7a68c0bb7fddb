"""What a block of rows of a factored mechanism contributes: exact row sums, expected losses, posterior moments.

Rows are taken in the order of tiles (`Factors.order`), and a block names the secrets that its rows are. All sums run
over windows: with F the cap, E(q_k(u)) = (E(q_k(u)) - E(F)) + E(F), the first 0 outside the window, the second the same
for all columns and added for all rows at once, exactly in row sums (certificate.py), else in far.py and `judgement`.
Row sums are integers and enter the certificate; losses and moments are floating point and enter figures only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from mechdesign.errors import InputError, UnsuitableError
from mechdesign.mechanism.factored.certificate import KERNEL_BITS, Factors
from mechdesign.mechanism.factored.far import far_losses
from mechdesign.setting.metric.windows import BLOCK, Window
from mechdesign.setting.objective.losses import APART, LENGTH, LOSSES, SQUARE, Loss
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

    @property
    def floor(self) -> float:
        """E(F) of the cap F, times 2^-58."""
        return float(self.factors.kernel[-1]) * 2.0**-KERNEL_BITS

    @cached_property
    def far(self) -> NDArray[np.float64]:
        """Sum over columns of W l(u, report), for every secret (n,)."""
        assert self.loss.code is not None
        return far_losses(self.secrets, self.reports, self.factors.weight, self.loss.code)


@dataclass(frozen=True, kw_only=True, eq=False)
class RowBlock:
    """All n rows: row_sum (n, 2), high and low 64 bits of S(u); loss (n,), expected loss from each secret; moments
    (c, 1 + a), sums over u of prior(u) (E(q_k(u)) - E(F)) W(k) / S(u) times 1 and the coordinates, from the mean of the
    secrets, where the loss is the squared distance, else None.
    """

    row_sum: NDArray[np.uint64]
    loss: NDArray[np.float64]
    moments: NDArray[np.float64] | None = None


def row_block(judged: LossData, start: int, stop: int) -> dict[str, NDArray[Any]]:
    """The rows start..stop in the order of tiles: secret (b,), with row_sum (b, 2) and loss (b,) of `RowBlock`; column
    (w,), with their share of its moments (w, 1 + a), of `size` columns.

    Cost: the windows around the secrets, and 4 ns for each of their columns.
    """
    factors = judged.factors
    centre = judged.secrets.mean(axis=0)
    above = factors.kernel * 2.0**-KERNEL_BITS - judged.floor
    weight = factors.weight.astype(float)
    secrets = factors.order[start:stop]
    sums: list[int] = []
    losses = np.empty(len(secrets))
    moments = np.zeros((factors.size, 1 + judged.secrets.shape[1]) if judged.loss.code == SQUARE else (0, 0))
    for own, window in tiles_of(factors, secrets):
        chosen = secrets[own]
        exact = factors.row_sums(window)
        total = np.array([s * 2.0**-KERNEL_BITS for s in exact])
        near = np.zeros(len(chosen))
        places = np.ascontiguousarray(judged.secrets[chosen].T)
        _add_losses(window.field, window.places, above, weight, judged.reports, places, judged.loss.code, near)
        losses[own] = (near + judged.floor * judged.far[chosen]) / total
        if moments.size:
            share = judged.prior[chosen] / total
            _add_moments(window.field, window.places, above, share, judged.secrets[chosen] - centre, moments)
        sums += exact
    found = {"secret": secrets, "row_sum": split_words(sums), "loss": losses}
    if moments.size:
        column = np.flatnonzero(moments[:, 0])
        found |= {
            "column": column,
            "moments": moments[column] * weight[column, None],
            "size": np.array([factors.size]),
        }
    return found


def sum_block(factors: Factors, start: int, stop: int) -> dict[str, NDArray[Any]]:
    """S(u) alone of the rows start..stop in the order of tiles: secret (b,) and row_sum (b, 2)."""
    secrets = factors.order[start:stop]
    return {"secret": secrets, "row_sum": sum_rows(factors, secrets)}


def sum_rows(factors: Factors, secrets: NDArray[np.int64]) -> NDArray[np.uint64]:
    """High and low 64 bits of S(u) (b, 2) of b secrets. Cost: the windows around 128 of them at a time, and 1 ns for
    each of their columns; less where they are in the order of tiles.
    """
    return split_words([s for _, window in tiles_of(factors, secrets) for s in factors.row_sums(window)])


def tiles_of(factors: Factors, secrets: NDArray[np.int64]) -> Iterator[tuple[slice, Window]]:
    """The windows around `BLOCK` secrets at a time, each to be used before the next is asked for."""
    room = factors.metric.windows()
    for first in range(0, len(secrets), BLOCK):
        own = slice(first, min(first + BLOCK, len(secrets)))
        yield own, factors.around(secrets[own], room)


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
def _add_losses(distances, columns, kernel, weight, reports, secrets, code, total):  # type: ignore[no-untyped-def]
    """Add the sum over columns of weight * kernel * loss to `total`, per source; secrets (a, b)."""
    sources = distances.shape[1]
    square, mass = np.empty(sources), np.empty(sources)
    for p in range(columns.size):
        k, row = columns[p], distances[p]
        for b in range(sources):
            mass[b] = weight[k] * kernel[row[b]]
        if code == APART:
            for b in range(sources):
                apart = False
                for axis in range(secrets.shape[0]):
                    apart |= secrets[axis, b] != reports[k, axis]
                total[b] += mass[b] if apart else 0.0
            continue
        for b in range(sources):
            square[b] = 0.0
        for axis in range(secrets.shape[0]):
            at, own = reports[k, axis], secrets[axis]
            for b in range(sources):
                square[b] += (own[b] - at) ** 2
        if code == LENGTH:
            for b in range(sources):
                total[b] += mass[b] * np.sqrt(square[b])
        else:
            for b in range(sources):
                total[b] += mass[b] * square[b]


@numba.njit(cache=True, nogil=True)
def _add_moments(distances, columns, kernel, share, secrets, moments):  # type: ignore[no-untyped-def]
    """Add share * kernel times (1, coordinates), summed over sources, to `moments` per column."""
    for p in range(columns.size):
        k = columns[p]
        for b in range(distances.shape[1]):
            mass = share[b] * kernel[distances[p, b]]
            moments[k, 0] += mass
            for axis in range(secrets.shape[1]):
                moments[k, 1 + axis] += mass * secrets[b, axis]
