"""Constructors refuse invalid values, with the entry and its index."""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import field as dataclass_field

import numpy as np
import pytest

import mechdesign as md
from mechdesign.errors import InputError
from mechdesign.extend import Edges, Metric

NODES = md.Domain.nodes(3)
GRID = md.Domain.grid((4, 2), 1.0)
LINE = md.Domain.grid((4,), 1.0)
MASKED = md.Domain.grid((2, 2), 1.0, mask=[[True, True], [True, False]])
RAGGED = [[0.0, 1.0], [1.0]]


def problem(**changed) -> md.DesignProblem:
    metric, prior, loss = md.Discrete(1.0), [0.25, 0.25, 0.5], md.losses.ZeroOne()
    return md.DesignProblem(**({"domain": NODES, "metric": metric, "prior": prior, "loss": loss} | changed))


def graph(tail, head, length) -> md.Graph:
    return md.Graph(tail=tail, head=head, length=length)


def program_with(constraint) -> md.programs.Constrained:
    return md.programs.Constrained(problem(), constraints=[constraint])


def disc(people) -> md.posteriors.PosteriorCap:
    return md.posteriors.PosteriorCap(radius=0.4, share="1/2", people=people)


# The call, the argument that the error names, and its value; NumPy's indices are the second route.
REFUSED = {
    "edge of length 0": (lambda: graph([0, 1], [1, 2], [1.0, 0.0]), "length", "0 at [1]"),
    "edge of infinite length": (lambda: graph([0, 1], [1, 2], [0.74, np.inf]), "length", "inf at [1]"),
    "two edges that are nan": (lambda: graph([0, 1], [1, 2], [np.nan] * 2), "length", "nan at [0], and 1 more"),
    "negative edge": (lambda: graph([0, 1, 0], [1, 2, 2], [1, 2, -3]), "length", "-3 at [2]"),
    "self-loop": (lambda: graph([0, 1, 2], [1, 2, 2], [1, 1, 1]), "edges", "2 at [2]"),
    "two lengths of one edge": (lambda: graph([0, 1, 1], [1, 2, 0], [1, 1, 2]), "edges", "1 at [0] and 2 at [2]"),
    "one edge twice": (lambda: graph([2, 1, 2], [1, 0, 1], [3, 1, 3]), "edges", "3 at [0] and 3 at [2]"),
    "ragged edges": (lambda: graph([0, 1], [1, 2], [1]), "edges", "tail (2,), head (2,), length (1,)"),
    "table of edges": (lambda: graph(*[np.ones((2, 2), int)] * 3), "edges", "(2, 2)"),
    "fractional end": (lambda: graph([0, 1.5], [1, 2], [1, 1]), "tail", "float64"),
    "end outside": (lambda: problem(metric=graph([0, 1], [1, 9], [1, 1])), "edges", "9 at [1]"),
    "negative end": (lambda: problem(metric=graph([0, -1], [1, 2], [1, 1])), "edges", "-1 at [1]"),
    "disconnected": (lambda: problem(metric=graph([0], [1], [1])), "mask", "2 parts"),
    "no edges": (lambda: problem(metric=graph([], [], [])), "mask", "3 parts"),
    "street of length 0": (
        lambda: md.geo.Streets(1.0, unit="m", tail=[0], head=[1], length=[0.0]),
        "length",
        "0 at [0]",
    ),
    "loss that is nan": (lambda: md.losses.TableLoss([[0, 1], [np.nan, 0]]), "loss", "nan at [1, 0]"),
    "infinite loss": (lambda: md.losses.TableLoss([[0, np.inf], [1, 0]]), "loss", "inf at [0, 1]"),
    "negative loss": (lambda: md.losses.TableLoss([[0, 1], [1, -2]]), "loss", "-2 at [1, 1]"),
    "loss that is 0": (lambda: md.losses.TableLoss(np.zeros((2, 2))), "loss", "0"),
    "loss in a row": (lambda: md.losses.TableLoss([0.0, 1.0]), "loss", "shape (2,)"),
    "ragged loss": (lambda: md.losses.TableLoss(RAGGED), "loss", "[[0.0, 1.0], [1.0]]"),
    "loss of another size": (lambda: problem(loss=md.losses.TableLoss(1 - np.eye(4))), "loss", "(4, 4)"),
    "prior that is nan": (lambda: problem(prior=[0.5, np.nan, 0.5]), "prior", "nan at [1]"),
    "infinite prior": (lambda: problem(prior=[0.5, 0.5, np.inf]), "prior", "inf at [2]"),
    "negative prior": (lambda: problem(prior=[0.5, -0.5, 1.0]), "prior", "-0.5 at [1]"),
    "prior of sum 0": (lambda: problem(prior=[0.0] * 3), "prior", "sum 0"),
    "prior of sum 2": (lambda: problem(prior=[1.0, 0.5, 0.5]), "prior", "sum 2"),
    "prior of another size": (lambda: problem(prior=[0.5, 0.5]), "prior", "(2,)"),
    "prior in a column": (lambda: problem(prior=np.full((3, 1), 1 / 3)), "prior", "(3, 1)"),
    "transposed prior": (lambda: problem(domain=GRID, prior=np.full((2, 4), 1 / 8)), "prior", "(2, 4)"),
    "prior in a masked cell": (lambda: problem(domain=MASKED, prior=np.full((2, 2), 0.25)), "prior", "0.25 at [1, 1]"),
    "ragged prior": (lambda: problem(prior=RAGGED), "prior", "[[0.0, 1.0], [1.0]]"),
    "negative weights": (lambda: md.priors.proportional([1.0, -2.0]), "prior", "-2 at [1]"),
    "infinite level": (lambda: md.PrivacyLevel.from_values(GRID, np.full((4, 2), np.inf)), "epsilon", "inf at [0, 0]"),
    "level of 0": (lambda: md.PrivacyLevel.from_values(LINE, [1.0, 0.0, 1.0, 0.0]), "epsilon", "0 at [1]"),
    "stencil of another number of axes": (
        lambda: problem(
            domain=GRID, metric=md.Eikonal(md.PrivacyLevel.constant(1.0), stencil=6), prior=md.priors.uniform(GRID)
        ),
        "stencil",
        "6",
    ),
    "stencil of nodes": (lambda: problem(metric=md.Eikonal(md.PrivacyLevel.constant(1.0))), "domain", "nodes"),
    "infinite coordinate": (lambda: md.Domain.points_at([[0, 1], [2, np.inf]], unit="m"), "points", "inf at [1, 1]"),
    "one place twice": (lambda: md.Domain.points_at([[0.0], [2.0], [0.0]], unit="m"), "points", "[0.] at [0, 2]"),
    "bound of 0": (lambda: md.programs.Bounded(problem(), worst_loss=[1, 0, 1]), "worst-loss", "0 at [1]"),
    "bound that is nan": (
        lambda: md.programs.Bounded(problem(), worst_loss=[1, 1, np.nan]),
        "worst-loss",
        "nan at [2]",
    ),
    "bound of words": (lambda: md.programs.Bounded(problem(), worst_loss=RAGGED), "worst-loss", "[[0.0, 1.0], [1.0]]"),
    "one of several priors": (
        lambda: md.programs.Robust(problem(), priors=[[1, 0, 0], [2, -1, 0]]),
        "prior",
        "-1 at [1]",
    ),
    "cap on no report": (lambda: program_with(md.programs.ReportCap(cap=0.5, reports=[0, 7])), "reports", "7 at [1]"),
    "cap at no secret": (lambda: program_with(md.programs.ReportCap(cap=0.5, secrets=[-1])), "secrets", "-1 at [0]"),
    "no such report": (lambda: program_with(md.programs.RequiredReport(report=3, least=0.1)), "report", "3 at [0]"),
    "distance of nodes": (lambda: program_with(md.programs.ErrorCap(radius=1.0, share=0.5)), "radius", "1.0"),
    "people of other places": (lambda: program_with(disc([1, 2])), "people", "(1, 2)"),
    "constraint that is concave": (lambda: program_with(lambda table: table[0, 0] ** 0.5 <= 0.5), "constraints", "<="),
    "levels of another shape": (
        lambda: md.positions.Positions(problem(), corner_level=[[1.0]]),
        "corner_level",
        "(1, 1)",
    ),
}


@pytest.mark.parametrize(("make", "field", "value"), REFUSED.values(), ids=REFUSED)
def test_constructor_names_the_entry(make, field, value):
    with pytest.raises(InputError) as caught:
        make()
    assert caught.value.field == field
    assert value in str(caught.value)


@pytest.mark.parametrize("domain", [GRID, LINE, md.Domain.grid((2, 3, 2), 1.0)])
def test_prior_of_the_shape_of_the_grid(domain):
    """The places of a grid run with the last axis fastest, as NumPy's ravel does."""
    people = np.arange(1.0, 1 + domain.size).reshape(domain.shape)
    weights_of_grid = md.priors.proportional(people)
    built = problem(domain=domain, prior=weights_of_grid)
    assert built.prior.tolist() == (people / people.sum()).ravel().tolist()
    assert problem(domain=domain, prior=weights_of_grid.astype(np.float32)).prior.shape == (domain.size,)


def test_prior_of_a_masked_grid():
    assert problem(domain=MASKED, prior=[[0.5, 0.3], [0.2, 0.0]]).prior.tolist() == [0.5, 0.3, 0.2]
    robust = md.programs.Robust(problem(domain=MASKED), priors=[[[0.5, 0.3], [0.2, 0.0]]])
    assert robust.priors.tolist() == [[0.5, 0.3, 0.2]]


def test_loss_without_reports_has_a_hint():
    loss = md.losses.TableLoss(np.ones((3, 2)))
    with pytest.raises(InputError, match=r"reports=md.Domain.nodes\(2\)"):
        problem(loss=loss)
    assert problem(loss=loss, reports=md.Domain.nodes(2)).loss_matrix.shape == (3, 2)


def test_lengths_of_whole_numbers():
    """Integers are lengths too, and edges may run from the later place to the earlier one."""
    edges = problem(metric=graph([2, 1], [1, 0], [2, 1])).edges
    assert (edges.tail.tolist(), edges.head.tolist(), edges.length.tolist()) == ([1, 0], [2, 1], [2.0, 1.0])


@dataclass(frozen=True, kw_only=True, eq=False)
class Weighted(Metric):
    """Two places that lie as far apart as the larger of their weights."""

    weights: np.ndarray | None = dataclass_field(default=None)
    kind = "weighted"

    def unscaled_edges(self, domain):
        tail, head = np.triu_indices(domain.size, 1)
        return Edges(tail=tail, head=head, length=np.maximum(self.weights[tail], self.weights[head]))

    def claim(self, domain):
        return "the larger of two weights"

    def words(self, unit, axes):
        return "weights"


@dataclass(frozen=True, kw_only=True, eq=False)
class Listed(Weighted):
    """The same, as a list of edges."""

    edge_source = "edge list only"
    described = (("weights", md.extend.finite),)


@dataclass(frozen=True, kw_only=True, eq=False)
class Described(Weighted):
    """The same, its weights described and read."""

    described = (("weights", lambda value, field: np.array([md.extend.finite(one, field) for one in value])),)


@pytest.mark.parametrize("kind", [Weighted, Listed])
def test_unstorable_metric_is_refused(kind):
    """Verification rebuilds a metric from its description, which would lack the weights."""
    with pytest.raises(InputError, match=r"cannot be stored in a file.*md\.Graph") as caught:
        problem(metric=kind(weights=np.array([1.0, 2.0, 3.0])))
    assert caught.value.field == "metric"


def test_metric_with_arrays_is_stored(tmp_path, monkeypatch):
    monkeypatch.setitem(md.extend.METRICS, "weighted", Described)
    built = md.solve(problem(metric=0.5 * Described(weights=np.array([1.0, 2.0, 3.0]))))
    md.save(built, tmp_path / "weighted.nc")
    assert md.verify(tmp_path / "weighted.nc").certified
