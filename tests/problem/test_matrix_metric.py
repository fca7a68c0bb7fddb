"""`md.Matrix`: a metric from a matrix, checked by name, and a file of it certified as the graph of all pairs."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest

import mechdesign as md
from mechdesign.errors import InputError

AWAY = np.array([[0.0, 1.0, 1.5, 2.0], [1.0, 0.0, 1.2, 1.4], [1.5, 1.2, 0.0, 0.9], [2.0, 1.4, 0.9, 0.0]])
LABELS = ["yes", "no", "both", "don't know"]


def problem(metric: md.Matrix) -> md.DesignProblem:
    return md.DesignProblem(md.Domain.classes(LABELS), metric, [0.4, 0.3, 0.2, 0.1], md.losses.ZeroOne())


def test_distances_are_the_entries_times_epsilon():
    made = problem(md.Matrix(AWAY, epsilon=0.7, unit="step"))
    assert made.distances == pytest.approx(0.7 * AWAY, rel=1e-15)
    assert made.metric.stated_level("1") == (0.7, "nats per step")


def test_designs_are_private_for_every_pair(tmp_path):
    """All pairs of the stored integers against the matrix itself; then verify, sample and export."""
    metric = md.Matrix(AWAY, epsilon=0.7, unit="step")
    mechanism = md.load(md.save(md.solve(problem(0.5 * metric)), tmp_path / "m.nc"))
    table = md.probabilities(mechanism).values
    for u, v in product(range(4), repeat=2):
        assert (table[u] <= np.exp(0.5 * 0.7 * AWAY[u, v]) * table[v] * (1 + 1e-12)).all()
    checked = md.verify(mechanism)
    assert (checked.certified, checked.lower_bound_checked, checked.reasons) == (True, True, [])
    assert md.export(mechanism, tmp_path / "m.csv").is_file()


def test_rows_of_a_frame_are_matched_by_label():
    order = [2, 0, 3, 1]
    frame = pd.DataFrame(AWAY, index=LABELS, columns=LABELS).iloc[order, order]
    assert np.array_equal(problem(md.Matrix(frame)).distances, AWAY)
    with pytest.raises(InputError, match="not those of the classes"):
        problem(md.Matrix(frame.rename(index={"both": "maybe"}, columns={"both": "maybe"})))


def with_entries(*entries: tuple[int, int, float], symmetric: bool = True) -> np.ndarray:
    matrix = AWAY.copy()
    for u, v, value in entries:
        matrix[u, v] = value
        if symmetric:
            matrix[v, u] = value
    return matrix


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (with_entries((0, 1, 1.1), symmetric=False), r"symmetric \(got 1.1 at \[0, 1\] and 1 at \[1, 0\]"),
        (with_entries((0, 3, 2.5)), "triangle inequality .got 2.5 from 0 to 3, 2.4 by way of [12]"),
        (with_entries((1, 1, 0.5)), "0 on the diagonal"),
        (with_entries((0, 1, 0.0)), "distance 0"),
        (with_entries((0, 1, np.inf)), "finite"),
        (with_entries((0, 1, np.nan)), "must be numbers"),
        (with_entries((0, 1, -1.0)), "not be negative"),
        (AWAY[:3], "square"),
        (np.zeros((1, 1)), "square"),
    ],
)
def test_other_matrices_are_refused_by_entry(matrix, message):
    with pytest.raises(InputError, match=message):
        md.Matrix(matrix)


def test_a_matrix_of_another_size_is_refused():
    with pytest.raises(InputError, match="3 rows for 4 places"):
        problem(md.Matrix(AWAY[:3, :3]))


def test_closing_takes_shortest_paths():
    """By hand: 0 to 3 is 2.5, and 2.4 by way of 1 or of 2; without an edge 0 to 1 it is 1.5 + 1.2."""
    closed = md.Matrix(with_entries((0, 3, 2.5)), close=True)
    assert np.asarray(closed.distance)[0, 3] == pytest.approx(2.4)
    assert np.asarray(md.Matrix(with_entries((0, 1, np.inf)), close=True).distance)[0, 1] == pytest.approx(2.7)
    apart = np.full((3, 3), np.inf)
    np.fill_diagonal(apart, 0.0)
    with pytest.raises(InputError, match="no path"):
        md.Matrix(apart, close=True)
