"""Series, DataFrames and DataArrays are matched to places by their labels; contradictions are refused.

The right values are those of the plain array in the order of the places: the second route is NumPy's indexing.
"""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

import mechdesign as md
from mechdesign.errors import InputError

PROBLEM = md.load_problem("line", cells=4)
PLANE = md.load_problem("flat", cells=3)
TABLE = md.probabilities(md.baselines.geometric(PROBLEM)).values
PERMUTED = [2, 0, 3, 1]
WORDS = ["low", "mid", "high", "top"]
FRAME = pd.DataFrame(TABLE)
NAMED = pd.DataFrame(TABLE, index=WORDS, columns=WORDS)
MECHANISM = md.baselines.geometric(PLANE)
CUBE = md.probabilities(MECHANISM)


def audit_result(table, problem=PROBLEM):
    audited = md.audit(table, problem)
    return audited.ratio, audited.loss


LABELLED = {
    "as it is": FRAME,
    "rows permuted": FRAME.iloc[PERMUTED],
    "columns permuted": FRAME.iloc[:, PERMUTED],
    "both permuted": FRAME.iloc[PERMUTED, PERMUTED],
    "transposed": FRAME.rename_axis(index="secret", columns="report").T,
    "ages": FRAME.set_axis([10, 20, 30, 40]),
    "from 1, permuted": FRAME.set_axis([1, 2, 3, 4]).iloc[PERMUTED],
    "words in one order": NAMED,
    "dims transposed": md.probabilities(md.baselines.geometric(PROBLEM)).T,
    "coordinates permuted": md.probabilities(md.baselines.geometric(PROBLEM)).isel(secret=PERMUTED),
    "reports permuted": md.probabilities(md.baselines.geometric(PROBLEM)).isel(report=PERMUTED),
    "numbers permuted": md.probabilities(md.baselines.geometric(PROBLEM))
    .drop_vars(["secret_x", "report_x"])
    .assign_coords(secret=range(4))
    .isel(secret=PERMUTED),
}


@pytest.mark.parametrize("name", LABELLED)
def test_tables_are_matched_by_labels(name):
    table = LABELLED[name]
    assert audit_result(table) == audit_result(TABLE)
    fixed = md.baselines.repair_table(table, PROBLEM)
    assert np.array_equal(fixed["mass"], md.baselines.repair_table(TABLE, PROBLEM)["mass"])


def test_compare_and_sweep_go_by_labels():
    rows = md.compare(PROBLEM, mechanisms={"plain": TABLE, "mine": FRAME.iloc[PERMUTED]}).set_index("mechanism")
    assert rows.loc["plain", "loss"] == rows.loc["mine", "loss"]
    curve = md.sweep(PROBLEM, [1.0], mechanisms={"plain": TABLE, "mine": LABELLED["coordinates permuted"]})
    assert float(curve["plain_loss"][0]) == float(curve["mine_loss"][0])


def test_order_of_words_is_reported():
    assert md.audit(NAMED, PROBLEM).notes == ["Secrets are taken in the order of the table: low, mid, high, top."]
    assert md.audit(FRAME, PROBLEM).notes == []


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (NAMED.sort_index(), "same labels in two orders"),
        (NAMED.iloc[:, PERMUTED], "same labels in two orders"),
        (FRAME.set_axis([30, 10, 40, 20]), "numbers that do not ascend"),
        (FRAME.reset_index(), "names its rows among its numbers"),
        (FRAME.assign(All=FRAME.sum(axis=1)), "last column is the sum of the others"),
        (FRAME.set_axis([0, 1, 0, 1]), "two secrets have one label"),
        (CUBE.rename(secret="u", report="y"), "other axes than secret and report"),
        (CUBE.assign_coords(secret_x=CUBE.secret_x + 1), "other secrets than the problem"),
    ],
)
def test_contradicting_labels_are_refused(table, message):
    with pytest.raises(InputError, match=message):
        md.audit(table, PLANE if len(table) == 9 else PROBLEM)


def test_coordinates_on_a_plane_give_the_order():
    order = np.random.default_rng(0).permutation(9)
    assert audit_result(CUBE.isel(secret=order, report=order[::-1]), PLANE) == audit_result(CUBE.values, PLANE)


WEIGHTS = np.array([0.1, 0.2, 0.3, 0.4])
ARRAY = md.baselines.geometric(PROBLEM)["prior"].copy(data=WEIGHTS)
PRIORS = {
    "Series": pd.Series(WEIGHTS).iloc[PERMUTED],
    "value counts": pd.Series(np.repeat(range(4), [1, 2, 3, 4])).value_counts(normalize=True),
    "classes from 1": pd.Series(WEIGHTS, index=[1, 2, 3, 4]).sort_values(ascending=False),
    "words": pd.Series(WEIGHTS, index=WORDS),
    "DataArray": ARRAY.isel(secret=PERMUTED),
}


@pytest.mark.parametrize("name", PRIORS)
def test_priors_are_matched_by_labels(name):
    prior = PRIORS[name]
    problem_with_prior = md.DesignProblem(PROBLEM.domain, PROBLEM.metric, prior, PROBLEM.loss)
    assert problem_with_prior.prior_array.tolist() == WEIGHTS.tolist()
    uniform = np.full(4, 0.25)
    expected = md.utility.kantorovich(WEIGHTS, uniform, PROBLEM.domain).value
    assert md.utility.kantorovich(prior, uniform, PROBLEM.domain).value == expected
    assert md.utility.kantorovich(uniform, prior, PROBLEM.domain).value == expected
    if name != "DataArray":
        assert md.priors.proportional(prior).tolist() == (WEIGHTS / WEIGHTS.sum()).tolist()


def test_a_prior_over_a_grid_has_x_first():
    weights = np.arange(1.0, 10) / 45
    values = MECHANISM["prior"].copy(data=weights)
    for labelled in (md.on_grid(values), md.on_grid(values).T, md.on_grid(values).isel(secret_x=slice(None, None, -1))):
        problem_with_prior = md.DesignProblem(PLANE.domain, PLANE.metric, labelled, PLANE.loss)
        assert problem_with_prior.prior_array.tolist() == weights.tolist()


def test_on_grid_goes_by_coordinates():
    values = MECHANISM["prior"].copy(data=np.arange(9.0))
    turned = md.on_grid(values.isel(secret=np.random.default_rng(1).permutation(9)))
    assert turned.identical(md.on_grid(values))
    assert md.on_grid(CUBE.T).transpose(*md.on_grid(CUBE).dims).equals(md.on_grid(CUBE))


def test_unordered_labels_need_a_domain():
    with pytest.raises(InputError, match="do not ascend"):
        md.priors.proportional(ARRAY.isel(secret=PERMUTED))
    with pytest.raises(InputError, match="do not ascend"):
        md.priors.proportional(pd.Series(WEIGHTS, index=[30, 10, 20, 40]))


def test_tables_of_losses_go_by_labels():
    values = np.arange(16.0).reshape(4, 4)
    frame = pd.DataFrame(values)
    for labelled in (frame, frame.iloc[PERMUTED], frame.iloc[:, PERMUTED]):
        loss = md.losses.TableLoss(labelled)
        assert loss.matrix(PROBLEM.domain, PROBLEM.domain).tolist() == values.tolist()
    with pytest.raises(InputError, match="two orders"):
        md.losses.TableLoss(NAMED.sort_index())


def test_frames_of_coordinates_go_by_their_columns():
    frame = pd.DataFrame({"y": [5.0, 6.0], "x": [0.0, 100.0]})
    assert md.Domain.points_at(frame, unit="m").points.tolist() == [[0, 5], [100, 6]]
    with pytest.raises(InputError, match="other columns than x, y and z"):
        md.Domain.points_at(frame.assign(id=[7, 8]), unit="m")
    with pytest.raises(InputError, match="labels that do not ascend"):
        md.Domain.points_at(frame.iloc[::-1], unit="m")


def test_limits_and_people_go_by_labels():
    limits = pd.Series([1.0, 2.0, 3.0, 4.0])
    for labelled in (limits, limits.iloc[PERMUTED]):
        assert md.programs.Bounded(PROBLEM, worst_loss=labelled).bounds.tolist() == [1, 2, 3, 4]
        cap = md.posteriors.PosteriorCap(radius=1.0, share=0.9, people=labelled.astype(int))
        assert np.asarray(cap.people).tolist() == [1, 2, 3, 4]
        query = md.losses.Query(labels=labelled.astype(int) % 2)
        assert query.labels.tolist() == [1, 0, 1, 0]


def test_edges_of_one_frame_keep_their_order():
    """Columns of a frame that was sorted and cut belong together by their rows."""
    edges = pd.DataFrame({"u": [0, 1, 2, 0], "v": [1, 2, 3, 2], "length": [3.0, 1, 2, 9]}).sort_values("length").head(3)
    graph = md.Graph(tail=edges["u"], head=edges["v"], length=edges["length"])
    assert list(zip(graph.tail, graph.head, graph.length, strict=True)) == [(1, 2, 1), (2, 3, 2), (0, 1, 3)]


def test_rows_far_from_1_are_not_normalised():
    """A column of ids among the numbers is off by more than rounding; counts are divided without being asked."""
    ids = np.column_stack([np.arange(4), TABLE])
    problem = md.DesignProblem(
        PROBLEM.domain, PROBLEM.metric, PROBLEM.prior, md.losses.TableLoss(np.ones((4, 5))), reports=md.Domain.nodes(5)
    )
    with pytest.raises(InputError, match="more than 1 %") as caught:
        md.audit(ids, problem, normalise=True)
    assert caught.value.value == "4"
    assert md.audit(TABLE * 1.009, PROBLEM, normalise=True).divided == "rows"
    with pytest.raises(InputError, match="more than 1 %"):
        md.audit(TABLE * 1.011, PROBLEM, normalise=True)
    counts = md.audit(np.rint(TABLE * 1000 * np.arange(1, 5)[:, None]), PROBLEM, normalise=True)
    assert counts.divided == "counts"
    assert (counts.row_sums["smallest"], counts.row_sums["largest"]) == pytest.approx((1000, 4000), abs=3)


KINDS = {"from 0": [0, 1, 2, 3], "from 1": [1, 2, 3, 4], "ages": [18, 30, 45, 70], "words": WORDS}
QUICK = 30  # orders
ONE = md.load_problem("discrete", secrets=4)
SKEWED = np.array([[0.7, 0.1, 0.1, 0.1], [0.2, 0.6, 0.1, 0.1], [0.1, 0.3, 0.5, 0.1], [0.1, 0.1, 0.4, 0.4]])


def as_frame(frame, folder):
    return frame


def as_long(frame, folder):
    path = folder / "long.csv"
    long = frame.rename_axis(index="secret", columns="report").stack().rename("probability")
    long.sample(frac=1, random_state=len(frame)).to_csv(path)
    return path


def as_matrix(frame, folder):
    frame.to_csv(folder / "matrix.csv", sep=";", decimal=",")
    return folder / "matrix.csv"


@given(
    rows=st.permutations(range(4)),
    columns=st.permutations(range(4)),
    kind=st.sampled_from(sorted(KINDS)),
    write=st.sampled_from([as_frame, as_long, as_matrix]),
)
@settings(max_examples=QUICK, deadline=None)
def test_no_order_of_labels_changes_an_answer(tmp_path_factory, rows, columns, kind, write):
    """A secret's own report is the diagonal: epsilon and 0/1 loss are those of one order for both, or none."""
    named = pd.DataFrame(SKEWED, index=KINDS[kind], columns=KINDS[kind]).iloc[list(rows), list(columns)]
    try:
        answer = audit_result(write(named, tmp_path_factory.mktemp("labels")), ONE)
    except InputError:
        assert kind in ("ages", "words")
        return
    assert answer == pytest.approx(audit_result(SKEWED, ONE), rel=1e-12)
