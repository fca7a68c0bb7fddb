"""The text of `mechdesign verify` and `mechdesign audit`: the verdict, its figures, the claim if `verbose`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from mechdesign.base.formatting import number
from mechdesign.base.registry import Role
from mechdesign.evaluation.loss import position_loss
from mechdesign.mechanism.mechanism_file import MechanismFile
from mechdesign.output.captions import readable_unit
from mechdesign.output.sentences import (
    any_gap,
    bound_sentence,
    error_sentence,
    join_sentences,
    limit_sentences,
    protection_sentence,
)
from mechdesign.output.text_tables import Block
from mechdesign.verification.verify import OF_A_MAP, Verification

if TYPE_CHECKING:
    from mechdesign.verification.audit import Audit


@dataclass(frozen=True, kw_only=True)
class RuleAuditor:
    """Audits rules by which positions are blurred: audit(rule, latitude=, disc=) returns a JSON document."""

    audit: Callable[..., dict[str, Any]]
    words: Callable[[Mapping[str, Any]], Iterator[Block]]


RULE_AUDITOR: Role[RuleAuditor] = Role("rules")
_WINDOWS = {"1d": "calendar day", "24h": "any 24 hours"}


def verification_words(
    result: Verification, stored: MechanismFile | None = None, *, verbose: bool = False
) -> Iterator[Block]:
    """The blocks of a verification; stored: the file of a certified mechanism."""
    if result.certified and result.windows is not None:
        yield "Certified: every table is private as claimed, and no transcript exceeds the stated cost of a window."
    elif result.certified:
        parts = [] if result.protection is None else [protection_sentence(result.protection)]
        if stored is not None:
            at_position = position_loss(stored.mechanism)
            parts += [limit_sentences(stored) or ""]
            parts.append(error_sentence(stored, at_position=at_position))
            # The bound over every mechanism was checked too, or the file is not certified.
            is_bounded = result.lower_bound_checked or any_gap(stored) is not None
            if is_bounded and (best := bound_sentence(stored, at_position=at_position)) is not None:
                parts.append(best)
        sums = "no row sum exceeds its bound" if result.edge_source == OF_A_MAP else "every row sum is exact"
        checks = f"Checked in integers: every inequality of the claim holds, and {sums}."
        yield join_sentences(["Certified.", *parts, checks])
    else:
        yield f"Not certified: {result.reasons[0]}."
    worst = result.worst
    # None: the file has no bound, or its proof was not asked for. A refused bound does not refuse the claim.
    bound = {None: "not checked", True: "follows from its multipliers", False: "refused"}[result.lower_bound_checked]
    why, rows = result.lower_bound_reason, result.row_ratio is not None
    yield {
        "violations": result.violations,
        "edges from": result.edge_source,
        "claim of any positions": None
        if result.position_claim is None
        else f"{result.position_breaches} inequalities broken",
        "ratio": None if result.ratio is None else number(result.ratio, up=True, digits=9),
        "ratio of rows": number(result.row_ratio or 0.0, up=True, digits=9) if rows and verbose else None,
        "closest to claim": _triple(worst, stored) if worst is not None and (verbose or not rows) else None,
        "expected loss": None
        if result.expected_loss is None
        else f"{number(result.expected_loss, up=True, digits=9)} {_loss_unit(stored)}".rstrip(),
        "lower bound": f"{bound}: {why}" if why else bound if result.lower_bound_checked else None,
        **{_WINDOWS.get(words, words): _window(cost) for words, cost in (result.windows or {}).items()},
        "sha256sum": result.sha256,
        "content checksum": stored.mechanism.attrs["sha256"] if verbose and stored is not None else None,
        "claim": result.claim if verbose else None,
        "claim of positions": result.position_claim if verbose else None,
    }
    yield from ({"another reason": reason} for reason in result.reasons[1:])


def checker_words(claims: Sequence[str]) -> list[str]:
    """The sentence of the claims that an extracted checker proved."""
    return [f"Checked by a program extracted from a machine-checked proof: {'; '.join(claims)}."]


def _triple(worst: Mapping[str, int], stored: MechanismFile | None) -> str:
    """A report and two secrets, by their labels if they are classes of a certified file."""
    secrets = None if stored is None else stored.domain
    reports = None if stored is None or stored.is_factored else stored.problem.reports
    u, v, y = worst["secret"], worst["other"], worst["report"]
    first, second = (str(k) if secrets is None else secrets.name_of(k) for k in (u, v))
    return f"report {y if reports is None else reports.name_of(y)}, secret {first} versus {second}"


def _loss_unit(stored: MechanismFile | None) -> str:
    """The unit of losses; "" for a file that is not certified, whose unit was not checked."""
    return "" if stored is None else readable_unit(stored.loss_unit)


def _window(cost: Mapping[str, Any]) -> str:
    """The maximum cost of a window, and how it is proved."""
    # Small designs are proved twice: by the rule's own limit, and by enumerating all transcripts of two windows.
    count = cost["transcripts"]
    proof = "by the rule" if count is None else f"by the rule, and on all {count} transcripts of two windows"
    return f"at most {float(Fraction(cost['worst'])):.12g} times the metric, {proof}"


def audit_words(result: Audit, repaired: Mapping[str, Any] | None, *, verbose: bool = False) -> Iterator[Block]:
    """The verdict of an audit, its findings, and the loss of the repaired table; the metric if `verbose`."""
    worst, zeros, sums, infinite = result.worst, result.zeros, result.row_sums, result.ratio is None
    unit = readable_unit(result.loss_unit)

    def name(role: str) -> str:
        return str(worst.get(f"{role}_label", worst[role]))

    if infinite:
        why = "a report is possible from one secret and impossible from another"
        yield f"The table is not private at any scale of the metric: {why}."
    elif result.verdict == "broken":
        yield f"The table breaks the claim: it is private at {result.ratio:.4g} times the metric."
    else:
        yield f"The table is private as claimed, at {result.ratio:.4g} times the metric."
    divided = f"every row was divided by its sum, {sums['smallest']:.9g} to {sums['largest']:.9g}"
    deviation = f"row {sums['row']:.0f} is off by {sums['largest_deviation']:.3g}"
    yield {
        "verdict": f"{result.verdict} ({result.breaches} inequalities broken, in exact integers)",
        "claimed eps": _level(result, result.claimed_epsilon),
        "effective eps": _level(result, result.effective_epsilon),
        "ratio": "infinite: a zero meets a positive probability" if infinite else f"{result.ratio:.6g}",
        "ratio without zeros": f"{result.finite_epsilon:.6g}",
        "worst": f"report {name('report')}: {worst['probability']:.6g} from secret {name('secret')}, "
        f"{worst['other_probability']:.6g} from {name('other')}, {worst['distance']:.6g} nats apart",
        "zeros": f"{zeros['entries']} entries, {zeros['mixed_columns']} columns with zeros and other entries, "
        f"{zeros['empty_columns']} columns of zeros",
        "row sums": f"counts: {divided}"
        if result.divided == "counts"
        else deviation + (f"; {divided}" if result.divided else ""),
        "loss": None if result.loss is None else f"{result.loss:.9g} {unit}".rstrip() + f" ({result.prior} prior)",
        "repaired loss": None if repaired is None else f"{repaired['loss']:.9g} {unit}".rstrip(),
        "file": None if repaired is None else repaired["file"],
        "metric": result.metric if verbose else None,
    }
    yield from ({"note": text} for text in result.notes)


def _level(result: Audit, epsilon: float | None) -> str | None:
    return None if epsilon is None else f"{epsilon:.9g} {result.epsilon_unit}"
