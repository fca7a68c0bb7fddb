"""promise: what a report protects and costs, in a sentence for people, from what was proved."""

from __future__ import annotations

import math

from mechdesign.closed_forms.noise.privacy_radius import odds_factor
from mechdesign.mechanism.stored import Stored
from mechdesign.output.terminal.words import loss_sentence
from mechdesign.setting.metric.euclidean import Euclidean


def promise(stored: Stored, *, loss: float | None) -> str:
    """The sentence. For the Euclidean metric it names the radius that was asked for (else that of a factor of 2), and
    the factor that the level of the claim gives within it, to four digits; on a plane the radius is on the ground. For
    other metrics it refers to the claim.
    """
    metric, domain = stored.metric, stored.domain
    said = "" if loss is None else f"{loss_sentence(loss, stored.loss.name, stored.loss.unit(domain.unit))}."
    by_claim = f"One report changes anybody's odds between two cells by a factor of at most e^d, d as claimed. {said}"
    if not isinstance(metric, Euclidean):
        return by_claim.strip()
    level = metric.epsilon * float(metric.scale)
    if domain.plane is not None:
        level *= 1 + domain.plane.excess(domain.reach)
    asked = stored.parameters["knobs"].get("radius")
    own = isinstance(asked, (int, float)) and 0 < asked < math.inf
    radius = float(asked) if own else math.log(2) / level if level > 0 else math.inf
    if not 0 < level * radius < 100:
        return by_claim.strip()
    unit = "" if domain.unit == "1" else f" {domain.unit}"
    within = f"Within {radius:.4g}{unit}, one report changes anybody's odds between two cells by a factor of at most"
    return f"{within} {odds_factor(level * radius):.4g}. {said}".strip()
