"""FactoredMechanism: rows, samples and exact integers of a factored Dataset, a block of secrets at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from mechdesign.base.arrays import Floats, Integers, Unsigned
from mechdesign.base.memory import require_memory
from mechdesign.base.threads import Rng, source
from mechdesign.errors import InputError, VerificationError
from mechdesign.factored.certificate import Factors
from mechdesign.factored.integer_metric import BLOCK
from mechdesign.factored.row_sums import dense_rows, join_words, merged_rows, rounded_words
from mechdesign.factored.schema import FACTORED
from mechdesign.mechanism.build import Extras, build_dataset
from mechdesign.mechanism.mechanism_file import MechanismFile
from mechdesign.mechanism.repair import repair
from mechdesign.mechanism.rows import Rows, Scan

_LIMB = 43  # bits of the low part of a cumulative mass
_HALF = np.uint64(29)
_MOST_COLUMNS = 2_000_000  # each at most 2^43 + 2^15 in the high part, so that sums of both fit 64 bits


@dataclass(frozen=True, kw_only=True, eq=False)
class FactoredMechanism(Rows):
    """Rows, samples and exact integers of a factored Dataset, verified on construction.

    Parameters
    ----------
    dataset : xarray.Dataset
        A factored mechanism, of which a copy is made.

    Examples
    --------
    >>> problem = md.load_problem("line", cells=4)
    >>> mechanism = md.factored.FactoredMechanism(md.solve(md.EikonalWeights(problem), method="factored"))
    >>> mechanism.table().sizes["report"]
    4
    """

    dataset: xr.Dataset = field(kw_only=False)
    report_dim = "secret"

    def __post_init__(self) -> None:
        if self.dataset.attrs.get("schema") != FACTORED:
            remedy = "use a Dataset that solve returned with method factored"
            schema = self.dataset.attrs.get("schema")
            raise InputError("not a factored mechanism", field="schema", value=schema, remedy=remedy)
        object.__setattr__(self, "dataset", self.dataset.copy(deep=True))
        columns = self.mechanism_file.mechanism.sizes["column"]
        if columns > _MOST_COLUMNS:
            message = f"must be at most {_MOST_COLUMNS:,}: use fewer cells"
            raise InputError(message, field="column", value=columns)

    @cached_property
    def mechanism_file(self) -> MechanismFile:
        return MechanismFile.read(self.dataset)

    @cached_property
    def factors(self) -> Factors:
        return self.mechanism_file.factors

    @cached_property
    def row_sums(self) -> list[int]:
        return join_words(self.dataset["row_sum"].values)

    def probabilities(self, secrets: ArrayLike) -> Floats:
        """P(y|u) (b, n) of secrets (b,), in floating point: for looking at. Cost: the distances from each secret.

        Examples
        --------
        >>> problem = md.load_problem("line", cells=3)
        >>> mechanism = md.factored.FactoredMechanism(md.solve(md.EikonalWeights(problem), method="factored"))
        >>> round(float(mechanism.probabilities([0]).sum()), 9)
        1.0
        """
        numbers = self.check(secrets)
        total = rounded_words(self.dataset["row_sum"].values[numbers])
        return merged_rows(self.factors, numbers, self.dataset["target"].values, total)

    def column_blocks(self) -> Iterator[tuple[Integers, Integers, Floats]]:
        """Yield reports (r,), secrets (b,) and P(y|u) (b, r) in floating point, each report once.

        Examples
        --------
        >>> problem = md.load_problem("line", cells=3)
        >>> mechanism = md.factored.FactoredMechanism(md.solve(md.EikonalWeights(problem), method="factored"))
        >>> reports, secrets, shares = next(iter(mechanism.column_blocks()))
        >>> shares.shape
        (3, 3)
        """
        # Neighbouring reports at a time, so that few secrets are in their window. Other secrets are at the cap, with
        # the smallest value of the kernel.
        factors = self.factors
        if factors.columns is not None:
            raise InputError("must be a mechanism whose columns are places", field="column", value=factors.size)
        kernel, total = factors.kernel.astype(float), rounded_words(self.dataset["row_sum"].values)
        target, room = self.dataset["target"].values, factors.metric.windows()
        secret = np.full(factors.size, -1)
        secret[factors.inner] = np.arange(self.secrets)
        ordered = np.argsort(factors.order)[target]  # where the report of a column stands in the order of the work
        for first in range(0, self.secrets, BLOCK):
            reports = factors.order[first : first + BLOCK]
            columns = np.flatnonzero((ordered >= first) & (ordered < first + BLOCK))
            window = room.window_of(columns)
            is_secret = secret[window.places] >= 0
            secrets = secret[window.places[is_secret]]
            block = np.zeros((len(reports), len(secrets)))
            np.add.at(block, ordered[columns] - first, (kernel[window.field[is_secret]] * factors.weight[columns]).T)
            yield reports, secrets, block.T / total[secrets, None]

    def row(self, secret: int) -> xr.DataArray:
        """P(.|u) of one secret over the reports, with their coordinates.

        Examples
        --------
        >>> problem = md.load_problem("line", cells=3)
        >>> mechanism = md.factored.FactoredMechanism(md.solve(md.EikonalWeights(problem), method="factored"))
        >>> mechanism.row(0).shape
        (3,)
        """
        coordinates = {
            str(name).replace("secret", "report"): ("report", values.values, values.attrs)
            for name, values in self.dataset.coords.items()
            if str(name).startswith("secret_")
        }
        values, attrs = self.probabilities([secret])[0], {"units": "1"}
        return xr.DataArray(values, dims="report", coords=coordinates, name="probability", attrs=attrs)

    def integers(self, secret: int) -> tuple[list[int], int]:
        """The exact masses of one row over the reports, and their sum S(u): P(y|u) = mass / sum.

        Examples
        --------
        >>> problem = md.load_problem("line", cells=3)
        >>> mechanism = md.factored.FactoredMechanism(md.solve(md.EikonalWeights(problem), method="factored"))
        >>> masses, total = mechanism.integers(0)
        >>> sum(masses) == total
        True
        """
        distances = self.factors.distances(self.check([secret]))[:, 0].tolist()
        masses, kernel, target = (
            [0] * self.secrets,
            self.factors.kernel.tolist(),
            self.dataset["target"].values.tolist(),
        )
        for q, weight, cell in zip(distances, self.factors.weight.tolist(), target, strict=True):
            masses[cell] += kernel[q] * weight
        self._check_sum(secret, sum(masses))
        return masses, self.row_sums[secret]

    def table(self) -> xr.Dataset:
        """The same mechanism as a table with rows summing to 2^62, repaired to integers and certified.

        Examples
        --------
        >>> problem = md.load_problem("line", cells=3)
        >>> mechanism = md.factored.FactoredMechanism(md.solve(md.EikonalWeights(problem), method="factored"))
        >>> mechanism.table().sizes["report"]
        3
        """
        problem = self.mechanism_file.problem
        require_memory(self.secrets, self.secrets, tables=6, noun="the table of a factored mechanism")
        mass = repair(self.probabilities(np.arange(self.secrets)), problem.edges, problem.weighted_loss)
        parameters = {
            name: value for name, value in self.mechanism_file.parameters.items() if name != "problem_parameters"
        }
        extras = Extras(parameters=parameters)
        return build_dataset(problem, mass, program=self.dataset.attrs["program"], extras=extras)

    def sample(self, secrets: ArrayLike, size: int, *, rng: Rng = None) -> Integers:
        """Reports (b, size) drawn independently for secrets (b,), each with exactly its probability mass / S(u).

        Bits come from the operating system; with `rng`, a seed or a NumPy generator, they can be predicted: for
        simulations only.

        Examples
        --------
        >>> problem = md.load_problem("line", cells=3)
        >>> mechanism = md.factored.FactoredMechanism(md.solve(md.EikonalWeights(problem), method="factored"))
        >>> mechanism.sample([0, 1], 4, rng=1).shape
        (2, 4)
        """
        numbers = self.check(secrets)
        self.certificate  # noqa: B018  proves the claim, once
        bits, _ = source(rng)
        target = self.dataset["target"].values
        drawn = np.empty((len(numbers), size), np.int64)
        for part, distances in dense_rows(self.factors, numbers):
            for b, row in enumerate(range(part.start, part.stop)):
                high, low = self._cumulative(distances[:, b])
                self._check_sum(numbers[row], (int(high[-1]) << _LIMB) + int(low[-1]))
                drawn[row] = target[_draw(high, low, size, bits)]
        return drawn

    def _check_sum(self, secret: int, total: int) -> None:
        if total != self.row_sums[secret]:
            message = "a row does not sum to its certified sum"
            raise VerificationError(message, field="row_sum", remedy="use an unaltered file")

    def _cumulative(self, distances: NDArray[np.uint16]) -> tuple[Unsigned, Unsigned]:
        # Exact: a mass of at most 2^86 is split at bit 43. It is made from the halves of E, so that no product exceeds
        # 2^57. The low parts of fewer than 2^21 columns add up below 2^64; their carries go to the high sums at the
        # end.
        mask = np.uint64((1 << _LIMB) - 1)
        kernel_high, kernel_low = self.factors.halves
        weight = self.factors.weight.astype(np.uint64)
        upper, lower = kernel_high[distances] * weight, kernel_low[distances] * weight  # mass = upper 2^29 + lower
        shift = np.uint64(_LIMB) - _HALF
        low = ((upper & np.uint64((1 << int(shift)) - 1)) << _HALF) + (lower & mask)
        high = (upper >> shift) + (lower >> np.uint64(_LIMB)) + (low >> np.uint64(_LIMB))
        total = np.cumsum(low & mask, dtype=np.uint64)
        return np.cumsum(high, dtype=np.uint64) + (total >> np.uint64(_LIMB)), total & mask

    def draw_live(self, secret: int, scan: Scan) -> tuple[int, str]:
        return int(self.sample([secret], 1)[0, 0]), "depend on the secret"

    def can_report(self, place: int) -> bool:
        return place < self.secrets and place in self.dataset["target"].values


def _draw(high: Unsigned, low: Unsigned, size: int, bits: Callable[[int], bytes]) -> Integers:
    # By inversion: a column is the number of cumulative masses that are at most a uniform integer.
    # Uniform integers of as many bits as the last mass has; those that are not below it are drawn again. Two words are
    # compared: the low ones only where high ones tie.
    columns, done = np.empty(size, np.int64), 0
    last = (high[-1], low[-1])
    dropped = np.uint64(64 - int(last[0]).bit_length())
    while done < size:
        raw = np.frombuffer(bits(16 * (size - done)), np.uint64).reshape(-1, 2)
        top, rest = raw[:, 0] >> dropped, raw[:, 1] >> np.uint64(64 - _LIMB)
        mask = (top < last[0]) | ((top == last[0]) & (rest < last[1]))
        top, rest = top[mask], rest[mask]
        place, beyond = np.searchsorted(high, top, side="left"), np.searchsorted(high, top, side="right")
        for tie in np.flatnonzero(place < beyond):
            place[tie] += np.searchsorted(low[place[tie] : beyond[tie]], rest[tie], side="right")
        columns[done : done + len(place)] = place
        done += len(place)
    return columns
