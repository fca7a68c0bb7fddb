"""What a utility study says: what its mechanisms are, and how far estimates from their reports are off."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mechdesign.output.terminal.printing import print_table, say

if TYPE_CHECKING:
    import pandas as pd


def print_study(table: pd.DataFrame) -> None:
    """What the mechanisms of a study are, then the mean loss of each over the sizes of datasets."""
    unit = table["unit"].iloc[0]
    for equal, own in table.groupby("equal", sort=False):
        say(f"equal {equal}")
        mechanisms = [
            [
                str(name),
                *(_text(lines[key].iloc[0]) for key in ("claimed_epsilon", "smallest_epsilon", "expected_distance")),
                f"{100 * lines['truthful'].iloc[0]:.3g} %",
            ]
            for name, lines in own.groupby("mechanism", sort=False)
        ]
        print_table(["mechanism", "claimed eps", "smallest eps", f"distance ({unit})", "truthful"], mechanisms)
        means = [
            [f"{str(estimator).replace('_', ' ')}, {name}", *(f"{mean:.1f}" for mean in lines["mean"])]
            for (estimator, name), lines in own.groupby(["estimator", "mechanism"], sort=False)
        ]
        print_table(["estimate", *(f"{size:,}" for size in own["size"].unique())], means)


def _text(value: float | None) -> str:
    return "-" if value is None else format(value, ".6g")
