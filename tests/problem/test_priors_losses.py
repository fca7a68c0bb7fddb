from __future__ import annotations

import numpy as np
import pytest

from mechdesign import DesignProblem, Domain, Euclidean, Raster, priors
from mechdesign.base.memory import require_memory
from mechdesign.errors import InputError, SizeError
from mechdesign.losses import LOSSES, Distance, SquaredDistance, TableLoss, ZeroOne
from mechdesign.problem.losses import check_loss
from mechdesign.problem.priors import check_prior

LAST_BITS = 1e-14  # sums and roots of a few numbers of order 1
QUADRATURE = 1e-6  # midpoint rule, 1000 points an axis: the error is of order 1/1000^2 and less

GRID = Domain.grid((2, 3), cell=(1.0, 2.0), unit="m", mask=np.array([[True, True, False], [True, True, True]]))
ELSEWHERE = Domain.points_at([[0.5, 1.0], [3.5, 5.0]], unit="m")


def test_priors():
    assert priors.uniform(GRID).tolist() == [0.2] * 5
    assert priors.proportional([1, 0, 3]).tolist() == [0.25, 0, 0.75]
    values = np.array([[1.0, 3.0], [0.0, 4.0]])
    density = Raster(x=np.array([0.5, 1.5]), y=np.array([1.0, 5.0]), values=values, unit="m")
    np.testing.assert_allclose(priors.from_density(density, GRID), np.array([1, 2, 0, 2, 4]) / 9, rtol=LAST_BITS)


@pytest.mark.parametrize("total", [1.0, 1 + 9e-10, 1 - 9e-10])
def test_normalised_prior_is_unchanged(total):
    assert check_prior([total / 4, 0, total * 3 / 4], 3).tolist() == [total / 4, 0, total * 3 / 4]


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        ([0.5, 0.5], "shape"),
        ([[1.0, 0.0, 0.0]], "shape"),
        ([0.5, 0.6, -0.1], "negative"),
        ([0.5, 0.5, np.nan], "finite"),
        ([0.5, 0.5, np.inf], "finite"),
        ([0, 0, 0], "zero everywhere"),
        ([0.5, 0.25, 0.25 + 2e-9], "sum to 1"),
        ([0.5, 0.25, 0.25 - 2e-9], "sum to 1"),
        ([1, 2, 3], "sum to 1"),
    ],
)
def test_bad_priors_are_refused(prior, message):
    with pytest.raises(InputError, match=message) as caught:
        check_prior(prior, 3)
    assert (caught.value.field, caught.value.exit_code) == ("prior", 2)


@pytest.mark.parametrize(("weights", "message"), [([1, -1], "negative"), ([1, np.nan], "finite"), ([0, 0], "zero")])
def test_bad_weights_are_refused_under_their_name(weights, message):
    with pytest.raises(InputError, match=message) as caught:
        priors.proportional(weights, field="counts")
    assert caught.value.field == "counts"


@pytest.mark.parametrize(
    ("name", "wanted", "unit"),
    [
        ("squared", [[0, 25], [4, 13], [1, 20], [5, 8], [17, 4]], "m^2"),
        ("distance", np.sqrt([[0, 25], [4, 13], [1, 20], [5, 8], [17, 4]]), "m"),
        ("zero-one", [[0, 1], [1, 1], [1, 1], [1, 1], [1, 1]], "1"),
    ],
)
def test_losses(name, wanted, unit):
    np.testing.assert_allclose(LOSSES[name].matrix(GRID, ELSEWHERE), wanted, rtol=LAST_BITS)
    assert LOSSES[name].unit("m") == unit
    assert LOSSES[name].unit("1") == "1"


def mean_loss_in_cell(cell, loss):
    """The mean of loss(distance to the centre) over a cell, by the midpoint rule."""
    axes = [(np.arange(1000) + 0.5) / 1000 * h - h / 2 for h in cell]
    square = sum(a**2 for a in np.meshgrid(*axes, sparse=True))
    return float(loss(np.sqrt(square)).mean())


@pytest.mark.parametrize("cell", [(0.7,), (0.7, 0.7), (0.3, 1.1)])
def test_squared_loss_within_a_cell(cell):
    domain = Domain.grid((2,) * len(cell), cell=cell, unit="m")
    assert SquaredDistance().within_cell(domain) == pytest.approx(
        mean_loss_in_cell(cell, np.square), rel=2 * QUADRATURE
    )
    if cell == (0.7, 0.7):
        assert SquaredDistance().within_cell(domain) == pytest.approx(0.7**2 / 6, rel=LAST_BITS)


@pytest.mark.parametrize("cell", [(0.7,), (0.7, 0.7)])
def test_distance_loss_within_a_cell(cell):
    domain = Domain.grid((2,) * len(cell), cell=cell, unit="m")
    assert Distance().within_cell(domain) == pytest.approx(mean_loss_in_cell(cell, np.abs), rel=QUADRATURE)


@pytest.mark.parametrize(
    ("loss", "domain"),
    [
        (SquaredDistance(), ELSEWHERE),
        (Distance(), ELSEWHERE),
        (Distance(), GRID),
        (Distance(), Domain.grid((2, 2, 2), cell=1.0, unit="m")),
        (ZeroOne(), GRID),
    ],
)
def test_loss_within_a_cell_is_none_off_simple_cells(loss, domain):
    assert loss.within_cell(domain) is None


def test_a_table_is_its_own_loss():
    table = np.arange(10.0).reshape(5, 2)
    np.testing.assert_array_equal(TableLoss(values=table).matrix(GRID, ELSEWHERE), table)
    with pytest.raises(InputError, match=r"shape \(5, 2\)") as caught:
        TableLoss(values=table.T).matrix(GRID, ELSEWHERE)
    assert caught.value.field == "loss"


@pytest.mark.parametrize(
    ("table", "message"),
    [([[0, np.nan]], "finite"), ([[0, np.inf]], "finite"), ([[1, -1e-9]], "negative"), ([[0, 0]], "zero everywhere")],
)
def test_bad_losses_are_refused(table, message):
    with pytest.raises(InputError, match=message) as caught:
        check_loss(np.array(table, float))
    assert caught.value.field == "loss"


def problem(**changes):
    fields = {
        "domain": GRID,
        "metric": Euclidean(epsilon=1.0, unit="m"),
        "prior": [0.1, 0.2, 0.3, 0.4, 0.0],
        "loss": SquaredDistance(),
    }
    return DesignProblem(**(fields | changes))


def test_a_problem_derives_its_tables():
    same_places, other_reports = problem(), problem(reports=ELSEWHERE)
    assert same_places.reports is GRID
    assert same_places.anchors.tolist() == [0, 1, 2, 3, 4]
    assert other_reports.anchors.tolist() == [0, 4]
    np.testing.assert_allclose(other_reports.weighted_loss[:, 0], [0, 0.8, 0.3, 2.0, 0], rtol=LAST_BITS)
    assert other_reports.best_constant == 0
    assert same_places.best_constant == int(np.argmin(same_places.prior_array @ GRID.euclidean_to(GRID) ** 2))
    np.testing.assert_allclose(
        same_places.distances, GRID.euclidean_to(GRID), rtol=1e-12
    )  # lengths are rounded down by 2^-44
    with pytest.raises(InputError, match="sum to 1"):
        problem(prior=[1, 1, 1, 1, 1])


def test_tables_that_do_not_fit_in_memory_are_refused():
    require_memory(10, 10, tables=3, noun="the table")
    with pytest.raises(SizeError, match="3 tables of 100000000 x 100000000") as caught:
        require_memory(10**8, 10**8, tables=3, noun="the table")
    assert (caught.value.field, caught.value.kind, caught.value.exit_code) == ("cells", "size", 2)
