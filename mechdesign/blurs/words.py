"""The text of an audit of a blur."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from mechdesign.base.formatting import length, number, percent
from mechdesign.blurs.audit import BlurAudit
from mechdesign.blurs.nats import FAR, Witness
from mechdesign.output.text_tables import Block


def blur_words(audit: BlurAudit, people: Mapping[str, float] | None = None) -> Iterator[Block]:
    """Yield the findings, the bound, and the figures at equal error."""
    count, disc = len(audit.findings), length(audit.disc, "m")
    yield {0: "No defect was found, which proves nothing.", 1: "1 defect was found."}.get(
        count, f"{count} defects were found."
    )
    yield from (finding.sentence for finding in audit.findings)
    yield bound_sentence(audit)
    figures: dict[str, object] = {
        "witness": witness_words(audit.witness) if audit.nats else None,
        "mean error": length(audit.mean_error, "m"),
        f"mean of {audit.averaged} reports": f"{length(audit.averaged_error, 'm')} off" if audit.averaged else None,
        f"disc of {disc}": f"holds the true position in {percent(audit.share)} of reports of even positions",
    }
    if people is not None:
        figures["where people live"] = (
            f"{percent(people['share'])} in the disc on average, above {percent(people['one_in_ten'])} for one "
            f"report in ten, {percent(people['before'])} before a report"
        )
    if audit.mean_error:
        noise, best = f"{number(audit.laplace_nats)} nats", f"{number(audit.optimum_nats, up=True)} nats"
        figures["planar Laplace noise"] = f"{noise} at this mean error, {percent(audit.laplace_share)} in the disc"
        figures["certified optimum"] = f"{best} at this mean error, on a square of 5.8 mean errors"
    if not audit.is_coupled:
        figures["coupled runs"] = "not possible: the seed does not decide the report"
    yield figures


def bound_sentence(audit: BlurAudit) -> str:
    """The lower bound as a factor of odds, and its extent."""
    pair, never = f"two positions {length(audit.within, 'm')} apart", "No audit from outside gives an upper bound."
    if audit.nats <= 0:
        return f"{audit.witness.draws:,} draws do not distinguish {pair}: the lower bound is 0 nats. {never}"
    factor, nats = (number(value, up=False, digits=3) for value in (math.exp(audit.nats), audit.nats))
    sure = percent(audit.confidence)
    return f"One report changes the odds of {pair} by a factor of at least {factor} ({nats} nats, {sure} sure). {never}"


def witness_words(witness: Witness) -> str:
    """The event of a witness, and its counts."""
    if witness.low is None or witness.high is None:
        event = f"{witness.feature} one of {len(witness.values)} values"
    elif witness.outside:
        event = f"{witness.feature} not from {witness.low:.6g} to {witness.high:.6g}"
    else:
        # A half-plane ends far away.
        ends = {"at least": witness.low, "at most": witness.high}
        event = " and ".join(f"{witness.feature} {word} {end:.6g}" for word, end in ends.items() if abs(end) < FAR)
    counts = zip(witness.hits, (witness.a, witness.b), strict=True)
    return f"{event}: {' and '.join(f'{hits:,} of {witness.draws:,} from {x:.6f}, {y:.6f}' for hits, (x, y) in counts)}"
