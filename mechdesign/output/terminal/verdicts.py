"""What `mechdesign verify` and `mechdesign audit` say: the verdict, its figures, the claim where it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from mechdesign.mechanism.stored import Stored
from mechdesign.output.figures import number
from mechdesign.output.sentences import bound_sentence, error_sentence, joined, protects
from mechdesign.output.terminal.printing import listing, print_table, say
from mechdesign.utility.loss.true_position import position_loss
from mechdesign.verification.audit import Audit
from mechdesign.verification.compact import REBUILT
from mechdesign.verification.rules import RuleAudit
from mechdesign.verification.verify import Verification

_WINDOWS = {"1d": "calendar day", "24h": "any 24 hours"}


def print_verification(result: Verification, stored: Stored | None = None, *, verbose: bool = False) -> None:
    """The outcome of a verification, reasons included; the claim and the rows of the table if `verbose`; stored, the
    mechanism where it is one and certified, for what it protects and costs.
    """
    if result.certified and result.windows is not None:
        say("Certified: every table is private as claimed, and no transcript costs more than a window is said to.")
    elif result.certified:
        parts = [] if result.protection is None else [protects(result.protection)]
        if stored is not None:
            at_position = position_loss(stored.mechanism)
            parts.append(error_sentence(stored, at_position=at_position))
            if result.lower_bound_checked and (best := bound_sentence(stored, at_position=at_position)) is not None:
                parts.append(best)
        sums = "no row sums to more than its bound" if result.rebuilt == REBUILT else "every row sums to what it should"
        say(f"Certified. {joined(parts).sentence} Proved in whole numbers: no inequality is broken, and {sums}.")
    else:
        say(f"Not certified: {result.reasons[0]}.")
    worst = result.worst
    said = {None: "not checked", True: "follows from its multipliers", False: "refused"}[result.lower_bound_checked]
    why, rows = result.lower_bound_reason, result.row_ratio is not None
    listing(
        {
            "violations": result.violations,
            "rebuilt from": result.rebuilt,
            "any position": None if result.position_claim is None else f"{result.position_breaches} cones broken",
            "ratio": None if result.ratio is None else number(result.ratio, up=True, digits=9),
            "ratio of rows": number(result.row_ratio or 0.0, up=True, digits=9) if rows and verbose else None,
            "worst": f"report {worst['report']}, from secret {worst['secret']} beside {worst['other']}"
            if worst is not None and (verbose or not rows)
            else None,
            "expected loss": number(result.expected_loss, up=True, digits=9)
            if result.expected_loss is not None and (verbose or not rows)
            else None,
            "lower bound": f"{said}: {why}" if why else said if result.lower_bound_checked else None,
            **{_WINDOWS.get(words, words): _window(told) for words, told in (result.windows or {}).items()},
            "sha256sum": result.sha256,
            "seal of contents": stored.mechanism.attrs["sha256"] if verbose and stored is not None else None,
            "claim": result.claim if verbose else None,
            "claim of positions": result.position_claim if verbose else None,
        }
    )
    for reason in result.reasons[1:]:
        listing({"also": reason})


def _window(told: Mapping[str, Any]) -> str:
    """What a window costs at most, and how that is known."""
    walked = told["transcripts"]
    by = "by its rule" if walked is None else f"by its rule, and on all {walked} transcripts of two windows"
    return f"{float(Fraction(told['worst'])):.12g} times the metric at most, {by}"


def print_audit(result: Audit, outcome: Mapping[str, Any] | None, *, verbose: bool = False) -> None:
    """The verdict of an audit, its findings a line each, then what the repair costs; the metric if `verbose`."""
    say(_verdict(result))
    at, zeros, sums = result.worst, result.zeros, result.row_sums
    infinite = "infinite: a zero meets a positive probability"
    listing(
        {
            "verdict": f"{result.verdict} ({result.breaches} breaches by exact integers)",
            "claimed eps": _level(result, result.claimed_epsilon),
            "smallest eps": _level(result, result.smallest_epsilon),
            "ratio": infinite if result.effective_epsilon is None else f"{result.effective_epsilon:.6g}",
            "without zeros": f"{result.finite_epsilon:.6g}",
            "worst": f"report {at['report']}: {at['probability']:.6g} from secret {at['secret']}, "
            f"{at['other_probability']:.6g} from {at['other']}, {at['distance']:.6g} nats apart",
            "zeros": f"{zeros['entries']} entries, {zeros['mixed_columns']} columns with zeros and others, "
            f"{zeros['empty_columns']} columns of zeros",
            "row sums": "counts, divided by their sums"
            if result.divided == "counts"
            else f"row {sums['row']:.0f} is off by {sums['largest_deviation']:.3g}"
            + ("; every row was divided by its sum" if result.divided else ""),
            "loss": None if result.loss is None else f"{result.loss:.9g} {result.loss_unit}, {result.prior} prior",
            "repaired loss": None if outcome is None else f"{outcome['loss']:.9g} {result.loss_unit}",
            "file": None if outcome is None else outcome["file"],
            "metric": result.metric if verbose else None,
        }
    )
    for text in result.notes:
        listing({"note": text})


def print_rule(result: RuleAudit) -> None:
    """The verdict on a rule, its nats by distance, errors, and what was modelled."""
    say(f"No epsilon bounds {result.rule}: {result.why}.")
    first = result.distances[0]
    heads = [*(_cells_away(int(k)) for k in first["cells"]), *(f"p >= {p}" for p in first["probabilities"])]
    rows = [
        [
            f"{row['distance']} m",
            f"{row['total_variation']:.3g}",
            f"{row['separated']:.0%}",
            *(f"{held['nats_per_km']:.3g}" for held in (*row["cells"].values(), *row["probabilities"].values())),
        ]
        for row in result.distances
    ]
    print_table(["apart", "variation", "told apart", *heads], rows)
    listing(
        {
            "figures": "largest nats per km between positions so far apart along one axis, of reports so many cells "
            "away, or of such probability"
            if heads
            else "0 nats within a cell, infinitely many across a border; the share of pairs that it tells apart",
            "error": f"{result.mean_distance:.6g} m on average, {result.mean_squared_error:.6g} m^2",
            "planar Laplace": f"{result.laplace['mean_distance']:.3g} nats per km at that mean, "
            f"{result.laplace['mean_squared_error']:.3g} at that square, for all reports and distances",
            "modelled": result.modelled,
            "left out": result.left_out,
        }
    )


def _cells_away(cells: int) -> str:
    return "own cell" if cells == 0 else f"{cells} away"


def _level(result: Audit, epsilon: float | None) -> str | None:
    return None if epsilon is None else f"{epsilon:.9g} {result.epsilon_unit}"


def _verdict(result: Audit) -> str:
    if result.effective_epsilon is None:
        return "The table is not private: a report is possible from one secret and impossible from another."
    if result.verdict == "broken":
        return f"The table breaks the claim: it is private at {result.effective_epsilon:.4g} times the metric."
    return f"The table is private as claimed, at {result.effective_epsilon:.4g} times the metric."
