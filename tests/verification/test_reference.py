"""The reference verifier itself: its arithmetic against other routes, and breaches that it must find."""

from __future__ import annotations

import ast
import contextlib
import json
import math
import sys
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import reference
import xarray as xr
from fixtures.file_parts import plain
from fixtures.files import KINDS, honest_file
from fixtures.forged_files import rewritten
from fixtures.rows import few_by_default
from reference import factored, geometry, sampled_untruths, untruths
from reference.claims import read_claim
from reference.exact import Length, exponential, log_ratio, lower_ratio, square_root, within
from reference.reading import File

from mechdesign import Domain, verify
from mechdesign.errors import MechdesignError
from mechdesign.extend import METRICS
from mechdesign.mechanism.certificate import exp_lower
from mechdesign.problem.lattice import stencil_pairs

SIMPSON = 1e-12  # relative; the package's line integrals in doubles
NUMBERS = [Fraction(0), Fraction(1, 3), Fraction(7, 10), Fraction(2), Fraction(10**9 + 7, 10**9), Fraction(1, 10**30)]


def test_reference_imports_neither_package_nor_numpy() -> None:
    for file in Path(reference.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            names = [node.module] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            roots = {str(name).partition(".")[0] for name in names}
            assert roots <= {"reference", *sys.stdlib_module_names}, file


@pytest.mark.parametrize("x", [*NUMBERS, Fraction(80), Fraction(399)])
@pytest.mark.parametrize("bits", [64, 250])
def test_exponentials_are_enclosed(x: Fraction, bits: int) -> None:
    low, high = exponential(x, bits)
    with localcontext() as context:
        context.prec = 300
        power = (Decimal(x.numerator) / Decimal(x.denominator)).exp() * 2**bits
        assert low <= power <= high
    assert high - low <= 2


@pytest.mark.parametrize("x", [*NUMBERS, Fraction(10**300), Fraction(9, 4)])
def test_square_roots_are_enclosed(x: Fraction) -> None:
    low, high = square_root(x, 100)
    assert low**2 <= x <= high**2
    assert high - low <= low / 2**100
    assert (low == high) == (
        math.isqrt(x.numerator) ** 2 == x.numerator and math.isqrt(x.denominator) ** 2 == x.denominator
    )


def test_a_comparison_is_decided_at_the_last_unit() -> None:
    second = 10**60
    length = Length(Fraction(1, 2), Fraction(2))
    with localcontext() as context:
        context.prec = 120
        most = int((Decimal(2).sqrt() / 2).exp() * second)
    assert within(most, second, length)
    assert not within(most + 1, second, length)
    assert within(second, second, Length(Fraction(0)))
    assert not within(second + 1, second, Length(Fraction(0)))


@pytest.mark.parametrize("length", [0.0, 1e-300, 1e-9, 0.1, 0.9, 1.0, 7.25, 39.9, 80.0, 1e4])
def test_ratios_are_those_of_the_package(length: float) -> None:
    assert lower_ratio(Fraction(length)) == exp_lower(length)


@pytest.mark.parametrize(("first", "second"), [(3, 2), (10**18 + 1, 10**18), (2**62, 1), (1001, 1000)])
def test_logarithms_keep_their_digits(first: int, second: int) -> None:
    with localcontext() as context:
        context.prec = 50
        assert log_ratio(first, second) == pytest.approx(float((Decimal(first) / Decimal(second)).ln()), rel=1e-14)


@pytest.mark.parametrize("kind", ["eikonal", "eikonal, masked", "eikonal, three axes", "factored, framed"])
def test_lengths_of_a_level_map_are_those_of_the_package(kind: str) -> None:
    honest = honest_file(kind)
    file = File(**plain(honest))
    claim = read_claim(honest.attrs["claim"], file)
    result = geometry.eikonal(file, claim.stencil or 0, claim.times)
    metric, domain = (json.loads(honest.attrs[name]) for name in ("metric", "domain"))
    places = np.array(file.points("secret"), float)
    rebuilt = METRICS[metric["kind"]].from_description(metric, scale=metric["multiplier"], stored_edges=None)
    edges = rebuilt.edges(Domain.from_description(domain, places))
    assert len(result) == len(edges.tail) == claim.edges
    for u, v, length in zip(edges.tail.tolist(), edges.head.tolist(), edges.length.tolist(), strict=True):
        assert float(result[min(u, v), max(u, v)]) == pytest.approx(length, rel=SIMPSON)


@pytest.mark.parametrize(
    ("stencil", "shape"), [(8, (3, 4)), (16, (4, 4)), (64, (6, 7)), (18, (3, 3, 2)), (26, (3, 2, 3))]
)
@pytest.mark.parametrize("seed", range(3))
def test_neighbours_around_masks_are_those_of_the_package(stencil: int, shape: tuple[int, ...], seed: int) -> None:
    mask = np.random.default_rng(seed).random(shape) < 0.7
    mask.flat[[0, -1]] = True
    cells = {tuple(cell): u for u, cell in enumerate(np.argwhere(mask).tolist())}
    result = {(u, v) for here, u in cells.items() for v in geometry.neighbours(here, stencil, cells) if u < v}
    tail, head = stencil_pairs(Domain.grid(shape, cell=1.0, unit="m", mask=mask), stencil)
    assert result == set(zip(tail.tolist(), head.tolist(), strict=True))


def figures_printed_of(mechanism: xr.Dataset) -> dict[str, Any]:
    """The figures that would be printed of a believed file."""
    figures = {name: mechanism.attrs[name] for name in ("claim", "expected_loss", "ratio")}
    figures |= {"position_claim": mechanism.attrs.get("position_claim")}
    bound = {"lower_bound_checked": "dual" in mechanism, "lower_bound_reason": "not asked"}
    return figures | bound | {"worst": None, "rebuilt": None}


def with_values(mechanism: xr.Dataset, **values: object) -> xr.Dataset:
    return mechanism.assign({k: (mechanism[k].dims, v, mechanism[k].attrs) for k, v in values.items()})


def with_json(mechanism: xr.Dataset, attribute: str, **changes: object) -> xr.Dataset:
    return mechanism.assign_attrs({attribute: json.dumps(json.loads(mechanism.attrs[attribute]) | changes)})


def tight_entry_lowered(kind: str) -> xr.Dataset:
    """A millionth of the lower mass of the tightest ratio moved within its row."""
    honest = honest_file(kind)
    mass, worst = honest["mass"].values.copy(), verify(honest).worst
    assert worst is not None
    row, report = mass[worst["other"]], worst["report"]
    amount = row[report] // np.uint64(10**6)
    row[report] -= amount
    row[int(np.argmax(np.where(np.arange(len(row)) == report, 0, row)))] += amount
    return with_values(honest, mass=mass)


def edge_lengthened(kind: str) -> xr.Dataset:
    honest = honest_file(kind)
    return with_values(
        honest, edge_length=honest["edge_length"].values * np.r_[1 + 1e-6, np.ones(honest.sizes["edge"] - 1)]
    )


def street_shortened() -> xr.Dataset:
    length = json.loads(honest_file("streets").attrs["metric"])["length"]
    return with_json(honest_file("streets"), "metric", length=[length[0] * (1 - 1e-6), *length[1:]])


def replace_claim_and_metric(kind: str, old: str, new: str, **metric: object) -> xr.Dataset:
    """Another sentence, with a metric that gives it."""
    return with_json(replace_claim(kind, old, new), "metric", **metric)


def smaller(kind: str) -> xr.Dataset:
    """A multiplier that is a thousandth smaller, in sentence and metric."""
    times = json.loads(honest_file(kind).attrs["metric"])["multiplier"]
    return replace_claim_and_metric(kind, f"{times!r} times", f"{0.999 * times!r} times", multiplier=0.999 * times)


def replace_claim(kind: str, old: str, new: str) -> xr.Dataset:
    assert old in honest_file(kind).attrs["claim"]
    return honest_file(kind).assign_attrs(claim=honest_file(kind).attrs["claim"].replace(old, new, 1))


def in_unit(unit: str) -> xr.Dataset:
    mechanism = honest_file("euclidean").copy(deep=True)
    for name in mechanism.coords:
        mechanism[name].attrs["units"] = unit
    return mechanism


def wrapped_step() -> xr.Dataset:
    """40 nats a unit and 8192 units an edge: the product of the integers is a multiple of 2^64."""
    honest = honest_file("factored, graph")
    units = np.full(honest.sizes["edge"], 8192, np.uint16)
    weight = np.full(honest.sizes["place"], 2**28, np.uint32)
    mechanism = with_values(honest, edge_units=units, weight=weight).assign_attrs(step=40 * 2**48, cap=1)
    built = factored.build(File(**plain(mechanism)))
    words = np.array([[s >> 64, s & (1 << 64) - 1] for s in built.sums], np.uint64)
    own = zip(built.mass, built.sums, built.target, strict=True)
    losses = np.array([float(Fraction(total - row[u], total)) for row, total, u in own])
    mechanism = with_values(mechanism, row_sum=words, row_loss=losses)
    return mechanism.assign_attrs(expected_loss=float(losses @ honest["prior"].values), ratio=1.0)


def columns_stretched() -> xr.Dataset:
    """A step twice as long, with the row sums and losses that follow from it."""
    honest = honest_file("factored, columns")
    mechanism = honest.assign_attrs(step=2 * honest.attrs["step"])
    built = factored.build(File(**plain(mechanism)))
    words = np.array([[s >> 64, s & (1 << 64) - 1] for s in built.sums], np.uint64)
    return with_values(mechanism, row_sum=words)


def column_changed(name: str, at: int, value: int) -> xr.Dataset:
    values = honest_file("factored, columns")[name].values.copy()
    values[at] = value
    return with_values(honest_file("factored, columns"), **{name: values})


def bound_of_another_level() -> xr.Dataset:
    """Multipliers and bound of the same program at half the level, and a factor that halves the edges of the list."""
    honest, half = honest_file("graph, doubled, minimax"), honest_file("graph, doubled, minimax", 0.5)
    values = {name: half[name].values for name in ("dual", "multiplier")}
    forged = with_values(honest, **values).assign_attrs(lower_bound=half.attrs["lower_bound"])
    assert forged.attrs["lower_bound"] > honest.attrs["objective"]
    return with_json(forged, "metric", multiplier=0.5)


def figure(kind: str, name: str, factor: float) -> xr.Dataset:
    return honest_file(kind).assign_attrs({name: honest_file(kind).attrs[name] * factor})


def row_moved() -> xr.Dataset:
    """A mass of one unit more: rows no longer sum to 2^62."""
    honest = honest_file("discrete")
    return with_values(honest, mass=honest["mass"].values + np.uint64(1))


ODDS, LIST = "odds", "list"
BREACHES: dict[str, tuple[Callable[[], xr.Dataset], str]] = {
    **{
        f"a tight ratio, {kind}": (lambda kind=kind: tight_entry_lowered(kind), ODDS)
        for kind in ("eikonal", "eikonal, masked", "euclidean", "discrete", "graph, table loss", "streets", "query")
    },
    **{
        f"a longer edge, {kind}": (lambda kind=kind: edge_lengthened(kind), LIST)
        for kind in ("eikonal", "euclidean", "graph, table loss", "streets")
    },
    "a shorter street": (street_shortened, LIST),
    "another stencil": (lambda: replace_claim_and_metric("eikonal", "8-neighbour", "16-neighbour", stencil=16), LIST),
    "a larger stencil": (
        lambda: replace_claim_and_metric("eikonal, masked", "16-neighbour", "8-neighbour", stencil=8),
        LIST,
    ),
    "a smaller factor": (lambda: smaller("multiple above 1"), ODDS),
    "a smaller level": (
        lambda: replace_claim_and_metric("euclidean", "0.69999999999999996", f"{0.699999:.17g}", epsilon=0.699999),
        ODDS,
    ),
    "another unit": (lambda: in_unit("m"), "places in m"),
    "another unit said": (lambda: replace_claim("euclidean", "nats per km", "nats per m"), "another sentence"),
    "another grid": (lambda: replace_claim("euclidean", "2 x 3", "3 x 2"), "another sentence"),
    "more secrets": (lambda: replace_claim("discrete", "all 4 secrets", "all 5 secrets"), "unreadable"),
    "other edges": (lambda: replace_claim("discrete", "6 edges", "7 edges"), LIST),
    "another level": (
        lambda: replace_claim("eikonal", "bilinear privacy level eps (0", "bilinear privacy level eps (1"),
        "another sentence",
    ),
    "another plane": (lambda: replace_claim("area", "48.85 N", "48.86 N"), "another sentence"),
    "a better plane": (lambda: replace_claim("area", "e-", "e-1"), "geodesic"),
    "a mass more": (row_moved, "2^62"),
    "a step that wraps": (wrapped_step, ODDS),
    "columns with a longer step": (columns_stretched, ODDS),
    "an offset": (lambda: column_changed("generator_offset", 0, 1), "row sum"),
    "a place of a column": (lambda: column_changed("generator_place", 0, 5), "row sum"),
    "a column less": (lambda: column_changed("first_generator", 1, 0), "unreadable"),
    "a generator elsewhere": (lambda: column_changed("generator_place", 0, 6), "unreadable"),
    "an offset above the cap": (lambda: column_changed("generator_offset", 0, 2**16 - 1), "unreadable"),
    "a smaller remapped loss of columns": (
        lambda: figure("factored, columns", "remapped_loss", 1 - 1e-6),
        "remapped_loss",
    ),
    "a bound of another level": (bound_of_another_level, "lower_bound"),
    "a bound above the loss": (lambda: figure("discrete", "lower_bound", 1 + 1e-6), "lower_bound"),
    "a bound from nothing": (lambda: with_values(honest_file("streets"), dual=np.zeros(5)), "lower_bound"),
    "another objective": (lambda: figure("robust", "objective", 1 - 1e-6), "objective"),
    "a smaller loss": (lambda: figure("eikonal", "expected_loss", 1 - 1e-6), "expected_loss"),
    "a smaller loss, factored": (lambda: figure("factored, distance", "expected_loss", 1 - 1e-6), "expected_loss"),
    "a smaller ratio": (lambda: figure("graph, table loss", "ratio", 1 - 1e-6), "ratio"),
    "a smaller remapped loss": (lambda: figure("factored, framed", "remapped_loss", 1 - 1e-6), "remapped_loss"),
}
EACH = pytest.mark.parametrize("breach", BREACHES)


@cache
def breached_file(breach: str) -> xr.Dataset:
    return rewritten(BREACHES[breach][0]())


@pytest.mark.parametrize("kind", few_by_default(KINDS, "eikonal", "tuples", "query", "factored, framed"))
def test_honest_files_are_true(kind: str) -> None:
    assert untruths(plain(honest_file(kind)), figures_printed_of(honest_file(kind))) == []


SAMPLED = [kind for kind in KINDS if kind in ("factored, framed", "factored, graph") or "columns" in kind]


@pytest.mark.parametrize("kind", SAMPLED)
def test_a_sample_of_the_edges_of_honest_files_is_true(kind: str) -> None:
    claim = honest_file(kind).attrs["claim"]
    for count in (1, 3, 1000):
        assert sampled_untruths(plain(honest_file(kind)), claim, count, seed=count) == []


@pytest.mark.parametrize("breach", ["a step that wraps", "columns with a longer step", "an offset"])
def test_breaches_are_found_on_all_edges_drawn(breach: str) -> None:
    mechanism = breached_file(breach)
    reasons = sampled_untruths(plain(mechanism), mechanism.attrs["claim"], 1000)
    assert any(BREACHES[breach][1] in reason for reason in reasons), reasons


@EACH
def test_breaches_are_found(breach: str) -> None:
    reasons = untruths(plain(breached_file(breach)), figures_printed_of(breached_file(breach)))
    assert any(BREACHES[breach][1] in reason for reason in reasons), reasons


@EACH
def test_breaches_are_refused_by_verify(breach: str) -> None:
    with contextlib.suppress(MechdesignError):
        assert not verify(breached_file(breach)).certified
