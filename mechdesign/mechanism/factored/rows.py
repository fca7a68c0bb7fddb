"""FactoredMechanism: rows, samples and exact integers of a factored mechanism, a block of secrets at a time.

Reports are the cells of the secrets: the mass of every column goes to the cell that the column reports (`target`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from mechdesign.base.entropy import source
from mechdesign.base.memory import require_memory
from mechdesign.errors import InputError, VerificationError
from mechdesign.mechanism.factored.certificate import KERNEL_BITS, Factors
from mechdesign.mechanism.factored.row_sums import join_words
from mechdesign.mechanism.rows import Rows, Scan
from mechdesign.mechanism.schema import COLUMNED, FACTORED
from mechdesign.mechanism.stored import Stored, read
from mechdesign.mechanism.table.dataset import make_mechanism
from mechdesign.mechanism.table.repair import repair
from mechdesign.setting.metric.windows import BLOCK, Distances

_LIMB = 43  # bits of the low part of a cumulative mass
_HALF = np.uint64(29)
_MOST_COLUMNS = 2_000_000  # each at most 2^43 + 2^15 in the high part, so that sums of both fit 64 bits


@dataclass(frozen=True, kw_only=True, eq=False)
class FactoredMechanism(Rows):
    """A factored Dataset with the questions a table answers: rows, samples, exact integers.

    The Dataset is copied, so that later changes do not reach it; what is drawn or returned exactly comes from rows that
    were added up again here, and draws from a mechanism whose claim was proved here, once.
    Raises: InputError for a Dataset of another schema, or of more than 2,000,000 columns; VerificationError for one
        that does not satisfy its schema.
    """

    dataset: xr.Dataset = field(kw_only=False)
    placed = "secret"

    def __post_init__(self) -> None:
        if self.dataset.attrs.get("schema") not in (FACTORED, COLUMNED):
            raise InputError(
                "not a factored mechanism",
                field="schema",
                value=self.dataset.attrs.get("schema"),
                remedy="use a Dataset that solve returned with method factored",
            )
        over = "column" if "column" in self.dataset.sizes else "place"
        if self.dataset.sizes[over] > _MOST_COLUMNS:
            raise InputError(
                f"more than {_MOST_COLUMNS:,} {over}s",
                field=over,
                value=self.dataset.sizes[over],
                remedy="use fewer cells",
            )
        object.__setattr__(self, "dataset", self.dataset.copy(deep=True))
        self.stored  # noqa: B018

    @cached_property
    def stored(self) -> Stored:
        """What the Dataset says, rebuilt."""
        return read(self.dataset)

    @cached_property
    def factors(self) -> Factors:
        """The integers of the mechanism."""
        return self.stored.factors

    @cached_property
    def row_sums(self) -> list[int]:
        """S(u) of every secret, exact."""
        return join_words(self.dataset["row_sum"].values)

    def probabilities(self, secrets: ArrayLike) -> NDArray[np.float64]:
        """P(y|u) (b, n) of secrets (b,), in floating point: for looking at. Cost: the distances from each secret."""
        asked = self.checked(secrets)
        kernel, weight = self.factors.kernel * 2.0**-KERNEL_BITS, self.factors.weight.astype(float)
        rows = np.zeros((len(asked), self.secrets))
        for own, distances in self._distances(asked):
            mass = kernel[distances] * weight[:, None]
            total = np.array([self.row_sums[u] * 2.0**-KERNEL_BITS for u in asked[own]])
            np.add.at(rows[own].T, self.dataset["target"].values, mass / total)
        return rows

    def row(self, secret: int) -> xr.DataArray:
        """P(.|u) of one secret over the reports, with their coordinates."""
        named = {str(name): ("report", values.values, values.attrs) for name, values in self.dataset.coords.items()}
        coordinates = {
            name.replace("secret", "report"): kept for name, kept in named.items() if name.startswith("secret_")
        }
        return xr.DataArray(
            self.probabilities([secret])[0], dims="report", coords=coordinates, name="probability", attrs={"units": "1"}
        )

    def integers(self, secret: int) -> tuple[list[int], int]:
        """The exact masses of one row over the reports, and their sum S(u): P(y|u) = mass / sum.

        Raises: InputError for a secret that is not there; VerificationError where the row does not sum to its S(u).
        """
        asked = self.checked([secret])
        masses = [0] * self.secrets
        (_, distances), *_ = self._distances(asked)
        kernel, target = self.factors.kernel.tolist(), self.dataset["target"].values.tolist()
        for q, weight, cell in zip(distances[:, 0].tolist(), self.factors.weight.tolist(), target, strict=True):
            masses[cell] += kernel[q] * weight
        if sum(masses) != self.row_sums[secret]:
            raise _other_sum()
        return masses, self.row_sums[secret]

    def table(self) -> xr.Dataset:
        """The same mechanism as a table with rows summing to 2^62, repaired to whole numbers and certified.

        Raises: SizeError where n x n tables do not fit.
        """
        problem = self.stored.problem
        require_memory(self.secrets, self.secrets, tables=6, what="the table of a factored mechanism")
        mass = repair(self.probabilities(np.arange(self.secrets)), problem.edges, problem.weighted_loss)
        parameters = {name: value for name, value in self.stored.parameters.items() if name != "knobs"}
        return make_mechanism(problem, mass, program=self.dataset.attrs["program"], parameters=parameters)

    def sample(self, secrets: ArrayLike, size: int, *, seed: int | None = None) -> NDArray[np.int64]:
        """Reports (b, size) drawn independently for secrets (b,), each with exactly its probability mass / S(u).

        A uniform integer below S(u) is compared with the exact cumulative masses. Bits come from the operating system;
        `seed` takes them from NumPy's generator instead, for simulations only: such reports can be predicted.
        Raises: InputError for a secret that is not there; VerificationError where the claim is not proved, or a row
        does not sum to its S(u).
        """
        asked = self.checked(secrets)
        self.admission  # noqa: B018
        bits, _ = source(seed)
        target = self.dataset["target"].values
        drawn = np.empty((len(asked), size), np.int64)
        for own, distances in self._distances(asked):
            for b, row in enumerate(range(own.start, own.stop)):
                high, low = self._cumulative(distances[:, b])
                if (int(high[-1]) << _LIMB) + int(low[-1]) != self.row_sums[asked[row]]:
                    raise _other_sum()
                drawn[row] = target[_draw(high, low, size, bits)]
        return drawn

    def _cumulative(self, distances: NDArray[np.uint16]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Cumulative masses (c,), exact, as a high part and the low 43 bits."""
        mask = np.uint64((1 << _LIMB) - 1)
        kernel_high, kernel_low = self.factors.halves
        weight = self.factors.weight.astype(np.uint64)
        upper, lower = kernel_high[distances] * weight, kernel_low[distances] * weight  # mass = upper 2^29 + lower
        shift = np.uint64(_LIMB) - _HALF
        low = ((upper & np.uint64((1 << int(shift)) - 1)) << _HALF) + (lower & mask)
        high = (upper >> shift) + (lower >> np.uint64(_LIMB)) + (low >> np.uint64(_LIMB))
        total = np.cumsum(low & mask, dtype=np.uint64)
        return np.cumsum(high, dtype=np.uint64) + (total >> np.uint64(_LIMB)), total & mask

    def _distances(self, asked: NDArray[np.int64]) -> Iterator[tuple[slice, Distances]]:
        for first in range(0, len(asked), BLOCK):
            own = slice(first, min(first + BLOCK, len(asked)))
            yield own, self.factors.distances(asked[own])

    def live(self, secret: int, scan: Scan) -> tuple[int, str]:
        return int(self.sample([secret], 1)[0, 0]), "depend on the secret"

    def can_report(self, place: int) -> bool:
        return place < self.secrets and place in self.dataset["target"].values


def _other_sum() -> VerificationError:
    return VerificationError(
        "a row sums to something else than was certified", field="row_sum", remedy="use an unaltered file"
    )


def _draw(
    high: NDArray[np.uint64], low: NDArray[np.uint64], size: int, bits: Callable[[int], bytes]
) -> NDArray[np.int64]:
    """Columns drawn by cumulative masses (c,): how many of them are at most a uniform integer below the last."""
    found = np.empty(size, np.int64)
    done = 0
    last = (high[-1], low[-1])
    spare = np.uint64(64 - int(last[0]).bit_length())
    while done < size:
        raw = np.frombuffer(bits(16 * (size - done)), np.uint64).reshape(-1, 2)
        top, rest = raw[:, 0] >> spare, raw[:, 1] >> np.uint64(64 - _LIMB)
        kept = (top < last[0]) | ((top == last[0]) & (rest < last[1]))
        top, rest = top[kept], rest[kept]
        place, beyond = np.searchsorted(high, top, side="left"), np.searchsorted(high, top, side="right")
        for tie in np.flatnonzero(place < beyond):
            place[tie] += np.searchsorted(low[place[tie] : beyond[tie]], rest[tie], side="right")
        found[done : done + len(place)] = place
        done += len(place)
    return found
