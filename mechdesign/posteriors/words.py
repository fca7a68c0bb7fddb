"""Sentences about limits on posteriors, and about audits of discs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from mechdesign.base.formatting import length, number, percent
from mechdesign.posteriors.shares import share_if_wrong
from mechdesign.problem.domain import Domain
from mechdesign.problem.vocabulary import disc_phrase, shape_of, words_of

if TYPE_CHECKING:
    from mechdesign.posteriors.limits import DiscConstraint, PosteriorCap, PosteriorLift

_SECOND_REPORT = "The limit covers one report; a second one can reveal more."


def cap_sentence(cap: PosteriorCap, domain: Domain) -> str:
    """The share that no disc exceeds after one report, and for whom."""
    share, disc, adversary = cap.exact, _disc_words(cap, domain), _adversary_words(cap, domain)
    doubled = _rounded_share(share_if_wrong(share, Fraction(2)))
    wrong = f". If each of these numbers is up to 2 times too high or too low, it is at most {doubled}"
    if cap.wrong > 1:
        factor = number(float(cap.wrong), up=False)
        wrong = f", also if each of these numbers is up to {factor} times too high or too low"
    return (
        f"After any one report, at most {_rounded_share(share)} of the probability lies in {disc}, {adversary}{wrong}. "
        f"{_SECOND_REPORT}"
    )


def lift_sentence(lift: PosteriorLift, domain: Domain) -> str:
    """The factor by which one report multiplies the probability of a disc at most, and for whom."""
    disc, factor = _disc_words(lift, domain), number(float(lift.exact_limit[1]), up=True)
    return (
        f"Any one report multiplies the probability of {disc} by at most {factor}, {_adversary_words(lift, domain)}. "
        f"{_SECOND_REPORT}"
    )


def _disc_words(limit: DiscConstraint, domain: Domain) -> str:
    words = words_of(domain)
    disc = disc_phrase(shape_of(domain), length(limit.radius, domain.unit, up=False))
    if limit.centres == "area":
        return f"any {words.many} that are together no larger than a {disc}"
    about = f" about the centre of {words.a_one}" if limit.centres == "places" else ""
    return f"any {disc}{about}"


def _adversary_words(limit: DiscConstraint, domain: Domain) -> str:
    counts = len(limit.claims())
    several = f", by any of {counts} counts" if counts > 1 else ""
    return f"for an adversary whose prior follows the number of people at the {words_of(domain).centres}{several}"


def _rounded_share(share: Fraction) -> str:
    return percent(float(share), up=True, digits=3)


def disc_words(audits: Sequence[Mapping[str, Any]], *, prior: bool = False) -> Iterator[str]:
    """The sentences of each audit, given as JSON; prior is True if people are the prior of the mechanism."""
    for audit in audits:
        largest, median, half, before = (
            percent(audit[name], up=True, digits=3) for name in ("worst", "median", "above_half", "before")
        )
        known = "is that of the file" if prior else "follows the number of people"
        at_most = "" if audit["exact"] else "at most "
        disc = disc_phrase(audit["shape"], length(audit["radius"], audit["unit"], up=False))
        about = f" {audit['about']}" if audit["about"] else ""
        one_disc, verb = "such an interval" if audit["shape"] == "interval" else f"one disc{about}", "holds"
        subject = f"one {disc}{about}"
        if audit["centres"] == "area":
            subject = f"the likeliest {audit['many']}, together no larger than a {disc},"
            one_disc, verb = f"such {audit['many']}", "hold"
        reports = f"{at_most}{half} of reports put" if audit["above_half"] else "no report puts"
        yield (
            f"For an adversary whose prior {known} at the {audit['counted_at']}, {subject} {verb} {at_most}{largest} "
            f"of the probability after the worst report and {at_most}{median} after the median one. "
            f"{reports[0].upper()}{reports[1:]} more than half into {one_disc}. "
            f"Before any report {one_disc} {verb} {at_most}{before}. A second report adds to that."
        )
