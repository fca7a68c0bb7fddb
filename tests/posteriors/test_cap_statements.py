"""The table of docs/reference/cap-statements.md: sentences on limits on discs, and the code that proves it."""

from __future__ import annotations

import re
from functools import cache, reduce
from importlib import import_module

import numpy as np
import pytest
from conftest import ROOT
from fixtures.tight_limits import limit_optimum, limit_program

import mechdesign as md
from mechdesign.errors import InfeasibleError
from mechdesign.mechanism.build import Extras, build_dataset
from mechdesign.mechanism.mechanism_file import MechanismFile
from mechdesign.output.sentences import bound_sentence, limit_sentences
from mechdesign.posteriors import PosteriorCap, PosteriorLift
from mechdesign.posteriors.audit import audit_mechanism_discs
from mechdesign.posteriors.words import disc_words
from mechdesign.programs import Constrained

PAGE = ROOT / "docs" / "reference" / "cap-statements.md"
ROWS = re.findall(r'^\| "(.+?)" \| `([\w.]+):([\w.]+)` \|', PAGE.read_text("utf-8"), re.M)
PEOPLE = list(range(1, 17))
NOISE = "after its worst report"  # of `area` alone: tests/geo/test_capped_area.py
SHARE = {"radius": 1.2, "share": "9/10", "people": PEOPLE}
LIMITS = [
    PosteriorCap(**SHARE),
    PosteriorCap(**SHARE, wrong_by=2),
    PosteriorCap(**SHARE | {"people": [PEOPLE, PEOPLE[::-1]]}),
    PosteriorCap(**SHARE, centres="places"),
    PosteriorCap(**SHARE, centres="area"),
    PosteriorLift(radius=0.5, factor=9, people=PEOPLE),
]


@cache
def all_statements() -> str:
    """Sentences on limits of all kinds, audits, a bound and an infeasible limit."""
    problem, parts = limit_program().problem, []
    for limit in LIMITS:
        parameters = Constrained(problem, constraints=[limit]).parameters()
        even = np.full((16, 16), 2**58, np.uint64)
        parts.append(
            limit_sentences(
                MechanismFile.read(
                    build_dataset(problem, even, program="constrained", extras=Extras(parameters=parameters))
                )
            )
        )
    parts.append(bound_sentence(MechanismFile.read(limit_optimum())))
    parts += disc_words([audit.as_dict() for audit in audit_mechanism_discs(limit_optimum(), [1.2, 4.5])])
    with pytest.raises(InfeasibleError) as caught:
        md.solve(Constrained(problem, constraints=[PosteriorCap(**SHARE | {"share": "1/10"})]))
    return " ".join([*map(str, parts), str(caught.value)])


def test_statements_of_the_table_name_existing_code() -> None:
    assert len(ROWS) > 10
    for words, module, name in ROWS:
        assert words in all_statements() or words == NOISE, words
        assert callable(reduce(getattr, name.split("."), import_module(module)))


def test_every_sentence_about_limits_is_in_the_table() -> None:
    for sentence in re.split(r"(?<=\.) (?=[A-Z])", all_statements()):
        if sentence != "A second report adds to that.":
            assert any(words in sentence for words, _, _ in ROWS), sentence
