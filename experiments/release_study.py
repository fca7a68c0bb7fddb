r"""The error of the mean of f over users who each release f privately: smooth sensitivity beside its baselines,
simulated.

| method | what a user sends | error of the mean of n |
|---|---|---|
| smooth | f(x) + (S(x) / eta) T_3, the eta of paper 002 | variance (Var T_3 / eta^2) sum S^2 / n^2, no bias |
| smooth_tight | the same with the eta of the joint form | smaller by 5 / 3 |
| lipschitz | f(x) + (K / eps) Lap(1), K the global constant | variance 2 (K / eps)^2 / n, no bias |
| ldp | f(x) + Lap(1) / (eps span) | variance 2 / (eps span)^2 / n, no bias |
| input_perturbation | x + noise, (planar) Laplace; f is asked afterwards | sum Var / n^2 + bias^2; the bias stays as n
grows |
| noisy_distance | kernels: \|x - t\| + Lap(1) / eps | as input_perturbation |

gamma = eps / 9 in both smooth methods. ldp is eps span nats for all pairs, so stricter than the others beyond a
distance of `span`, and laxer within. An answer costs its eps: k queries cost k eps, except input_perturbation, which
answers all queries from one noisy secret and costs eps once. No method clips its estimate.

The secrets are a fixed population; a dataset of size N is its first N users. Repetition r draws the noise of query q
and method m from `SeedSequence([seed, r, m, q])` (input_perturbation: one draw for all queries), whatever other methods
are studied; datasets are nested, and the two smooth methods share their noise. A sum of n equal Laplace variables is
drawn as the difference of two Gamma(n) variables, which is its exact law; other noise is drawn user by user.
T_3 has no fourth moment: the squared error of the smooth methods has infinite variance, so its simulated mean converges
slowly and from below; the expected error is exact. Source: paper 002, section 5.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from experiments.release_queries import Array, KernelQuery, ReleaseQuery
from mechdesign.base.checks import check_epsilon, check_whole, finite, positive
from mechdesign.closed_forms.noise.laws import Laplace, StudentT
from mechdesign.errors import InputError, UnsuitableError
from mechdesign.utility.population.study import band_figures

METHODS = ("smooth", "smooth_tight", "lipschitz", "input_perturbation", "noisy_distance", "ldp")
SMOOTH = METHODS[:2]
TRUTHS = ("soft", "hard")
SHARE = 1 / 9  # of epsilon: the smoothness gamma
_LAW = StudentT(3)
_BLOCK = 1 << 18  # users at a time
_STREAMS = {name: max(1, place) for place, name in enumerate(METHODS)}  # of random numbers; smooth methods share one


@dataclass(frozen=True, kw_only=True, eq=False)
class ReleaseStudy:
    """What is simulated.

    Fields: secrets (n,), or (n, 2) for queries of the plane, in one unit; queries; epsilon, nats per that unit; sizes
    of the nested datasets, ascending, at most n; span, the distance in that unit at which `ldp` is as strict as the
    others; methods out of `METHODS`; seed.
    Raises: InputError for what does not fit; UnsuitableError for noisy_distance where a query is no kernel.
    """

    secrets: ArrayLike
    queries: Sequence[ReleaseQuery]
    epsilon: float
    sizes: Sequence[int]
    span: float
    methods: Sequence[str] = ("smooth", "smooth_tight", "lipschitz", "input_perturbation", "ldp")
    seed: int = 0

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        positive(self.span, "span")
        if not isinstance(self.seed, (int, np.integer)) or isinstance(self.seed, bool) or self.seed < 0:
            raise InputError("must be a whole number, 0 or more", field="seed", value=self.seed, remedy="use seed=0")
        if not self.queries:
            raise InputError("is empty", field="queries", value=0, remedy="ask at least one query")
        shape = finite(self.secrets, "secrets").shape
        for query in self.queries:
            if shape[1:] != ((query.axes,) if query.axes > 1 else ()) or not shape:
                raise InputError(
                    f"must have shape ({'n,' if query.axes == 1 else f'n, {query.axes}'}) for {type(query).__name__}",
                    field="secrets",
                    value=shape,
                    remedy="give one row per user",
                )
        self._check_methods()
        sizes = list(self.sizes)
        if not sizes or sizes != sorted({int(size) for size in sizes}) or not 1 <= sizes[0] <= sizes[-1] <= shape[0]:
            raise InputError(
                f"must be whole numbers, ascending, from 1 to the {shape[0]} secrets",
                field="sizes",
                value=sizes,
                remedy=f"use sizes such as [{max(1, shape[0] // 10)}, {shape[0]}]",
            )

    def _check_methods(self) -> None:
        if not self.methods or len(set(self.methods)) < len(self.methods) or not set(self.methods) <= set(METHODS):
            raise InputError(
                "must be different methods",
                field="methods",
                value=list(self.methods),
                remedy="use some of " + ", ".join(METHODS),
            )
        if "noisy_distance" in self.methods and not all(isinstance(query, KernelQuery) for query in self.queries):
            raise UnsuitableError(
                "noisy_distance is for kernels only",
                field="methods",
                value=list(self.methods),
                remedy="leave it out, or ask a KernelQuery",
            )

    @property
    def gamma(self) -> float:
        """The smoothness of the bound, epsilon / 9, per unit of the secrets."""
        return self.epsilon * SHARE


def smooth_eta(epsilon: float, *, tight: bool) -> float:
    """The noise budget of T_3 at gamma = epsilon / 9, per unit: epsilon / sqrt 3, or the joint form's 0.745 epsilon."""
    return _LAW.eta(epsilon, epsilon * SHARE, tight)


def noise_factor(name: str, query: ReleaseQuery, epsilon: float, span: float) -> float:
    """What multiplies the noise added to f: T_3 times the bound (smooth methods), or Lap(1) (lipschitz, ldp)."""
    if name in SMOOTH:
        return 1 / smooth_eta(epsilon, tight=name == "smooth_tight")
    return (query.constant if name == "lipschitz" else 1 / span) / epsilon


def user_errors(
    name: str, query: ReleaseQuery, x: Array, epsilon: float, span: float, *, bound: Array | None = None
) -> tuple[Array, Array]:
    """Variance and bias of what a user at x sends, relative to f(x), each (n,), without a grid of outputs.

    name out of `METHODS`; epsilon, nats per unit of x; span in that unit. nan where there is no closed form. The mean
    of n answers has the sum of the variances over n^2 and the mean of the biases. bound (n,): the smooth sensitivity at
    gamma = epsilon / 9, where it is known.
    """
    nothing = np.zeros(len(x))
    if name in SMOOTH:
        known = query.sensitivity(x, epsilon * SHARE) if bound is None else bound
        return (noise_factor(name, query, epsilon, span) * known) ** 2 * _LAW.variance, nothing
    if name in ("lipschitz", "ldp"):
        return nothing + noise_factor(name, query, epsilon, span) ** 2 * Laplace().variance, nothing
    if name == "noisy_distance":
        assert isinstance(query, KernelQuery)
        moments: tuple[Array, Array] | None = query.distance_moments(x, epsilon)
    else:
        moments = query.moments(x, epsilon)
    if moments is None:
        return nothing + np.nan, nothing + np.nan
    mean, square = moments
    return square - mean**2, mean - query.values(x)


def release_study(
    study: ReleaseStudy, *, repetitions: int = 20, on_progress: Callable[[str], None] | None = None
) -> xr.Dataset:
    """Simulate a study; see the module docstring.

    Parameters: repetitions; on_progress, called with a few words after every query.
    Returns: `estimate` (mechanism, query, size, repetition); `truth` (truth_kind, query, size), the mean of f and of
        the hard rule over the users of a dataset; `variance` and `bias` (mechanism, query, size) of the estimate in
        closed form, the bias relative to the soft truth, nan where there is none (planar Laplace noise). Attributes:
        epsilon, span, seed.
    Raises: InputError for repetitions not positive.
    Cost: a smooth bound and f per query, and per repetition a draw a user for each method that has no shortcut: 0.1 us
        each. Memory: a few arrays of n numbers, and the estimates.
    """
    check_whole(repetitions, "repetitions")
    kept = len(study.methods), len(study.queries), len(study.sizes)
    estimate = np.empty((*kept, repetitions))
    variance, bias = np.full(kept, np.nan), np.full(kept, np.nan)
    truth = np.empty((len(TRUTHS), *kept[1:]))
    for q in range(len(study.queries)):
        case = _Case(study, q)
        truth[:, q] = case.soft, case.hard
        for m, name in enumerate(study.methods):
            variance[m, q], bias[m, q] = case.expected(name)
        for r in range(repetitions):
            found = case.estimates(r)
            for m, name in enumerate(study.methods):
                estimate[m, q, :, r] = found[name]
        if on_progress is not None:
            on_progress(f"query {q + 1} of {len(study.queries)}")
    dims = ("mechanism", "query", "size")
    return xr.Dataset(
        {
            "estimate": ((*dims, "repetition"), estimate),
            "truth": (("truth_kind", "query", "size"), truth),
            "variance": (dims, variance),
            "bias": (dims, bias),
        },
        coords={
            "mechanism": list(study.methods),
            "truth_kind": list(TRUTHS),
            "query": np.arange(kept[1]),
            "size": np.asarray(study.sizes, np.int64),
            "repetition": np.arange(repetitions),
        },
        attrs={"epsilon": float(study.epsilon), "span": float(study.span), "seed": int(study.seed)},
    )


def release_bands(simulated: xr.Dataset) -> xr.Dataset:
    """Squared errors of a simulated study, averaged over its queries, per truth_kind, mechanism and size.

    mean over the repetitions, the MSE; mean_low, mean_high, low and high as `study.bands`; expected, the MSE in closed
    form, variance + bias^2, nan where there is none; total = mean times the number of queries: with many queries, the
    aggregated squared error (ASE) of paper 002. Attributes: those of the study, repetitions, queries.
    """
    error = ((simulated["estimate"] - simulated["truth"]) ** 2).mean("query")
    offset = simulated["bias"] + simulated["truth"].sel(truth_kind="soft", drop=True) - simulated["truth"]
    found = band_figures(error.transpose("truth_kind", "mechanism", "size", "repetition"))
    expected = (simulated["variance"] + offset**2).mean("query", skipna=False)
    found["expected"] = expected.transpose("truth_kind", "mechanism", "size")
    found["total"] = found["mean"] * simulated.sizes["query"]
    attrs = {"repetitions": simulated.sizes["repetition"], "queries": simulated.sizes["query"]}
    return found.assign_attrs(**simulated.attrs, **attrs)


def expected_errors(simulated: xr.Dataset, sizes: Sequence[int]) -> xr.Dataset:
    """The errors in closed form for datasets of other sizes, whose users are distributed as the largest dataset's.

    Returns: as `release_bands`, with `expected` and a `mean` that is nan. Variances fall as 1 / size, biases stay.
    Raises: InputError for sizes that are not positive whole numbers.
    """
    for size in sizes:
        check_whole(size, "sizes")
    last = simulated.isel(size=-1)
    users = xr.DataArray(np.asarray(sizes, np.int64), dims="size", coords={"size": np.asarray(sizes, np.int64)})
    offset = last["bias"] + last["truth"].sel(truth_kind="soft", drop=True) - last["truth"]
    expected = (last["variance"] * last["size"] / users + offset**2).mean("query", skipna=False)
    expected = expected.drop_vars("size").assign_coords(size=users["size"])
    expected = expected.transpose("truth_kind", "mechanism", "size")
    return xr.Dataset({"expected": expected, "mean": expected * np.nan}, attrs=simulated.attrs)


class _Case:
    """One query of a study made ready: what every repetition needs."""

    def __init__(self, study: ReleaseStudy, number: int) -> None:
        self.study, self.number, self.query = study, number, study.queries[number]
        self.sizes = np.asarray(study.sizes, np.int64)
        self.x = np.asarray(study.secrets, float)[: self.sizes[-1]]
        self.values = self.query.values(self.x)
        self.soft, self.hard = self._means(self.values), self._means(self.query.hard(self.x))
        wanted = any(name in SMOOTH for name in study.methods)
        self.bound = self.query.sensitivity(self.x, study.gamma) if wanted else np.empty(0)

    def expected(self, name: str) -> tuple[Array, Array]:
        """Variance and bias (size,) of a method's estimates, relative to the soft truth; nan where unknown."""
        study = self.study
        variance, bias = user_errors(name, self.query, self.x, study.epsilon, study.span, bound=self.bound)
        return self._means(variance) / self.sizes, self._means(bias)

    def estimates(self, repetition: int) -> dict[str, Array]:
        """The estimates (size,) of every method in one repetition."""
        found, noise = {}, np.empty(0)
        for name in self.study.methods:
            if name in SMOOTH:
                if len(noise) == 0:
                    noise = self._smooth_noise(self._rng(name, repetition, self.number))
                found[name] = self.soft + self._scale(name) * noise
            elif name in ("lipschitz", "ldp"):
                drawn = laplace_sums(self.sizes, self._rng(name, repetition, self.number))
                found[name] = self.soft + self._scale(name) * drawn / self.sizes
            else:
                query = self.number if name == "noisy_distance" else 0
                found[name] = self._answers(name, self._rng(name, repetition, query))
        return found

    def _scale(self, name: str) -> float:
        return noise_factor(name, self.query, self.study.epsilon, self.study.span)

    def _smooth_noise(self, rng: np.random.Generator) -> Array:
        return self._over_users(lambda users: self.bound[users] * _LAW.sample(rng, users.stop - users.start))

    def _answers(self, name: str, rng: np.random.Generator) -> Array:
        query, epsilon = self.query, self.study.epsilon
        if name == "input_perturbation":
            return self._over_users(lambda users: query.after_noise(perturbed(self.x[users], epsilon, rng)))
        assert isinstance(query, KernelQuery)
        return self._over_users(lambda users: query.of_distance(perturbed(query.distance(self.x[users]), epsilon, rng)))

    def _over_users(self, term: Callable[[slice], Array]) -> Array:
        """The mean of term over the first users, for every size, in blocks."""
        sums, total, start = [], 0.0, 0
        for size in self.sizes.tolist():
            for low in range(start, size, _BLOCK):
                total += float(term(slice(low, min(low + _BLOCK, size))).sum())
            sums.append(total)
            start = size
        return np.array(sums) / self.sizes

    def _means(self, values: Array) -> Array:
        """The mean of values (n,) over the first users, for every size."""
        return np.cumsum(np.add.reduceat(values, [0, *self.sizes[:-1]])) / self.sizes

    def _rng(self, name: str, repetition: int, query: int) -> np.random.Generator:
        seed = [int(self.study.seed), repetition, _STREAMS[name], query]
        return np.random.default_rng(np.random.SeedSequence(seed))


def perturbed(x: Array, epsilon: float, rng: np.random.Generator) -> Array:
    """Secrets with noise, for simulations only: Laplace on a line (n,), planar Laplace in the plane (n, 2)."""
    if x.ndim == 1:
        return x + rng.laplace(scale=1 / epsilon, size=len(x))
    radius, angle = rng.standard_gamma(2.0, len(x)) / epsilon, rng.uniform(0.0, 2 * np.pi, len(x))
    return x + radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])


def laplace_sums(sizes: NDArray[np.int64], rng: np.random.Generator) -> Array:
    """Sums of the first sizes (k,), ascending, of independent Lap(1) variables, by their exact law."""
    steps = np.diff(sizes, prepend=0)
    return np.cumsum(rng.standard_gamma(steps) - rng.standard_gamma(steps))
