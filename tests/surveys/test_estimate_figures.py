"""Figures of a stored estimate: recomputed from its counts and mechanisms, or refused by name."""

from __future__ import annotations

import json

import numpy as np
import pytest
from fixtures.estimates import NAMES_OF_ALL, estimate_of, mechanisms_of
from fixtures.forged_files import rewritten
from fixtures.pages import page_of

from mechdesign.errors import VerificationError
from mechdesign.surveys.evidence import check_estimate


@pytest.mark.parametrize("name", NAMES_OF_ALL)
def test_every_honest_estimate_follows(name: str) -> None:
    mechanisms = mechanisms_of(name)
    check_estimate(estimate_of(name), mechanisms)
    check_estimate(estimate_of(name))


def of_one(name: str, attribute: str, factor: float) -> dict[str, object]:
    return {attribute: float(estimate_of(name).attrs[attribute]) * factor}


ATTRIBUTES = {  # estimate, altered attributes, field in the error
    "confidence": ("linear", {"confidence": 0.99}, "confidence"),
    "invalid confidence": ("linear", {"confidence": 1.5}, "confidence"),
    "together": ("linear", {"simultaneous": 1}, "confidence"),
    "z": ("linear", {"z": 1.9}, "confidence"),
    "fit": ("misfit", {"fit_p": 0.5}, "fit_p"),
    "fit of halves": ("linear", of_one("linear", "fit_p", 0.5), "fit_p"),
    "statistic": ("misfit", of_one("misfit", "fit_statistic", 1.01), "fit_statistic"),
    "freedom": ("linear", {"fit_freedom": 3}, "fit_freedom"),
    "method": ("stopped", {"method": "newton"}, "stop"),  # the rule of that method
    "the other method": ("linear", {"method": "expectation maximization"}, "stop"),
    "another method": ("linear", {"method": "closed form"}, "method"),
    "rule": ("linear", {"stop": "L* - L <= 1e-30 nats per report"}, "stop"),
    "likelihood": ("linear", of_one("linear", "log_likelihood", 0.99), "log_likelihood"),
    "gap": ("stopped", {"gap": 1e-12}, "gap"),
    "larger gap": ("linear", {"gap": 1.0}, "gap"),
    "reports": ("linear", {"reports": 3_001}, "reports"),
    "digest": ("linear", {"reports_sha256": "0" * 64}, "reports_sha256"),
    "reasons": ("few", {"reasons": json.dumps([None] * 6)}, "effective"),
}


@pytest.mark.parametrize("case", ATTRIBUTES)
def test_an_altered_figure_is_refused_by_its_name(case: str) -> None:
    name, changes, field = ATTRIBUTES[case]
    altered = rewritten(estimate_of(name), **changes)
    with pytest.raises(VerificationError) as caught:
        page_of(altered, mechanisms=mechanisms_of(name))
    assert caught.value.field == field


ARRAYS = {
    "effective": ("linear", "effective", 1.01),
    "share": ("linear", "share", 1.001),
    "likelihood share": ("linear", "likelihood_share", 1.001),
    "distribution": ("cells", "distribution", 1.001),
}


@pytest.mark.parametrize("case", ARRAYS)
def test_an_altered_array_is_refused_by_its_name(case: str) -> None:
    name, variable, factor = ARRAYS[case]
    honest = estimate_of(name)
    altered = honest.copy(deep=True)
    altered[variable].values[0] *= factor
    with pytest.raises(VerificationError) as caught:
        page_of(rewritten(altered), mechanisms=mechanisms_of(name))
    assert caught.value.field == variable


def test_without_mechanisms_counts_are_checked() -> None:
    for changes in ({"confidence": 0.99}, {"z": 1.9}, {"reports": 1}, {"reasons": json.dumps([None] * 6)}):
        with pytest.raises(VerificationError):
            page_of(rewritten(estimate_of("few"), **changes))
    moved = estimate_of("cells").copy(deep=True)
    moved["distribution"].values[:2] = np.array([-1e-6, 2e-6])
    with pytest.raises(VerificationError):
        page_of(rewritten(moved))
