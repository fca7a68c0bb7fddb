"""`mechdesign level`: from what people ask for to an epsilon, and back."""

from typing import Annotated

import typer

from mechdesign.cli.options import (
    EpsilonOption,
    FactorOption,
    JsonOption,
    NatsOption,
    RadiusOption,
    WithinOption,
    real,
    whole,
)
from mechdesign.cli.parsing import radius_asked


def level(
    within: WithinOption = None,
    factor: FactorOption = None,
    nats: NatsOption = None,
    epsilon: EpsilonOption = None,
    unit: Annotated[str, typer.Option("--unit", help="The unit of length, such as m or km.")] = "m",
    reports: Annotated[int, whole("--reports", help="How many reports of one person.")] = 1,
    interest: Annotated[float | None, real("--interest", help="Radius of an area to be retrieved.")] = None,
    confidence: Annotated[float, real("--confidence", help="How surely all of that area.")] = 0.95,
    radius: RadiusOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say what a privacy level means: odds within a radius, planar Laplace noise, the cost of several reports."""
    from mechdesign.output.terminal import printing
    from mechdesign.output.terminal.level import level_document, print_level

    document = level_document(
        radius=radius_asked(within, radius),
        unit=unit,
        factor=factor,
        nats=nats,
        epsilon=epsilon,
        reports=reports,
        interest=interest,
        confidence=confidence,
    )
    if as_json:
        printing.print_json(document)
    else:
        print_level(document)
