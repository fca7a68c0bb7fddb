"""Classes with labels in a session: named by --secret and `report`, named in releases and in the file of the design."""

from __future__ import annotations

import numpy as np
import pytest

import mechdesign as md
from mechdesign.errors import InputError

LABELS = ["low", "mid", "high"]


@pytest.fixture
def design(tmp_path):
    domain = md.Domain.classes(LABELS, ordered=True)
    stay = np.array([[0.9, 0.1, 0.0], [0.05, 0.9, 0.05], [0.0, 0.1, 0.9]])
    # Steep enough that a report is nearly always the truth: the release then names the class that was given.
    problem = md.DesignProblem(domain, md.Euclidean(12.0), [0.3, 0.4, 0.3], md.losses.Distance())
    made = md.sessions.SessionDesign(
        tables=[md.solve(problem)],
        rule=md.sessions.Clock(hours=[0, 12]),
        ticks=2,
        movement=md.sessions.Transitions(stay),
    )
    return md.sessions.save_design(made, tmp_path / "classes.json")


def test_labels_pass_through_a_session(design, tmp_path, run, run_json):
    file = tmp_path / "me.session"
    assert run("session", "create", file, design, "--limit", "3")[0] == 0
    code, first = run_json("session", "report", file, "--tick", "0", "--secret", "high")
    assert (code, first["place"], first["label"]) == (0, 2, "high")
    code, out, _ = run("session", "report", file, "--tick", "1", "--secret", "2")
    assert code == 0
    assert "Tick 1: class high." in " ".join(out.split())
    code, refused = run_json("session", "report", file, "--tick", "2", "--secret", "higher")
    assert (code, refused["error"]["field"]) == (2, "secret")
    assert "low" in refused["error"]["message"]


def test_session_of_python_takes_labels(design, tmp_path):
    session = md.sessions.Session.create(tmp_path / "me.session", design=design, limit=3)
    release = session.report("low", tick=0)
    assert (release.place, release.label) == (0, "low")
    with pytest.raises(InputError, match="lower"):
        session.report("lower", tick=1)
