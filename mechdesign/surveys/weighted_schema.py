"""The schema of sealed weighted estimates, whose sums by domain and answer suffice to compute every figure again."""

from __future__ import annotations

from mechdesign.mechanism.schema import Schema, VariableSpec

_PER_ANSWER = VariableSpec(dtype="float64", dims=("domain", "answer"))
_PER_AREA = VariableSpec(dtype="float64", dims=("domain", "area"))
_OPTIONAL = VariableSpec(dtype="float64", dims=("domain", "area"), optional=True)

WEIGHTED = Schema(
    name="mechdesign/estimate/weighted/1",
    own_variables={
        "count": VariableSpec(dtype="int64", dims=("report",)),
        "area_of": VariableSpec(dtype="int64", dims=("secret",)),
        # Sums over persons of w, w^2 and w^4; answers are the reports, and then the missing answer if it is a class.
        **dict.fromkeys(("weights_1", "weights_2", "weights_4"), _PER_ANSWER),
        **dict.fromkeys(("persons", "missing"), VariableSpec(dtype="int64", dims=("domain",))),
        **dict.fromkeys(("design_effect", "effective_sample"), VariableSpec(dtype="float64", dims=("domain",))),
        **dict.fromkeys(("estimate", "share", "low", "high", "standard_error", "effective", "bias"), _PER_AREA),
        **dict.fromkeys(("difference", "difference_low", "difference_high"), _OPTIONAL),
        **dict.fromkeys(("total", "total_low", "total_high"), _OPTIONAL),
    },
    places=("secret",),
    attributes={
        **dict.fromkeys(("schema", "problem", "domain", "mechanisms", "areas", "domains", "reasons"), str),
        **dict.fromkeys(("missing_answers", "reports_sha256", "versions", "sha256"), str),
        **dict.fromkeys(("confidence", "z", "fit_statistic", "fit_p"), float),
        **dict.fromkeys(("reports", "fit_freedom", "simultaneous"), int),
    },
    optional={"population": float},
)
