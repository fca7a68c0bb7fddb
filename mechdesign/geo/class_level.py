"""The document of `mechdesign level --classes`: an epsilon between any two of K classes, by randomized response.

    P(y|u) = e^eps / (K - 1 + e^eps) if y = u, else 1 / (K - 1 + e^eps)    (Kairouz et al. 2014)                    (1)

A share is estimated from the share of its reports, divided by the difference of the two probabilities of (1). At a
share of 1/K the variance is that of a survey without privacy, divided by the square of the difference.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from mechdesign.base.formatting import number, percent
from mechdesign.base.validation import check_epsilon, check_whole
from mechdesign.evaluation.privacy_radius import odds_factor
from mechdesign.output.text_tables import Block


def class_level_document(*, classes: int, epsilon: float, reports: int = 1) -> dict[str, Any]:
    """Explain an epsilon in nats between any two classes."""
    # correct, wrong: the two probabilities of (1); people: how many times the people a share of 1 / classes needs.
    count = check_whole(classes, "classes", minimum=2)
    nats, total = check_epsilon(epsilon), check_whole(reports, "reports")
    other = math.exp(-nats)
    wrong = other / (1 + (count - 1) * other)
    correct = 1 / (1 + (count - 1) * other)
    return {
        "classes": count,
        "epsilon": nats,
        "epsilon_unit": "nats",
        "factor": odds_factor(nats),
        "correct": correct,
        "wrong": wrong,
        "people": 1 / (correct - wrong) ** 2,
        "reports": total,
        "nats_together": total * nats,
        "factor_together": odds_factor(total * nats),
        "epsilon_each": nats / total,
    }


def class_level_words(document: Mapping[str, Any]) -> Iterator[Block]:
    """Yield the document as text; factors and people are rounded up."""
    factor, count = number(document["factor"], up=True, digits=6), document["reports"]
    epsilon = number(document["epsilon"], digits=9)
    yield (
        f"Between any two of {document['classes']} classes, one report changes anybody's odds by a factor of at most "
        f"{factor}: epsilon is {epsilon} nats."
    )
    lines = {
        "epsilon": f"{epsilon} nats",
        "randomized response": f"the true class with {percent(document['correct'], up=False, digits=3)}, each other "
        f"class with {percent(document['wrong'], up=True, digits=3)}",
        "people": f"a share of 1/{document['classes']} needs {number(document['people'], up=True, digits=3)} times the "
        "people of a survey without privacy",
    }
    if count > 1:
        lines |= {
            f"{count} reports": f"each at this epsilon, together a factor of at most "
            f"{number(document['factor_together'], up=True, digits=6)}",
            "split epsilon": f"{number(document['epsilon_each'], up=False, digits=6)} nats for each report",
        }
    yield lines
