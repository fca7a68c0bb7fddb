"""Release studies as a table: every setting, truth, method and dataset size; and what is read off it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pandas as pd
import xarray as xr
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from experiments.release_claims import Claim

_WIDTH = 132  # columns


def release_table(panels: Mapping[str, xr.Dataset]) -> pd.DataFrame:
    """A line per setting, truth_kind, mechanism and size: what `experiments.release_study.release_bands` says of each
    setting, its attributes as columns. Errors are in squared answers.
    """
    frames = []
    for title, bands in panels.items():
        frame = bands.to_dataframe().reset_index()
        frame.insert(0, "setting", title)
        frames.append(frame.assign(**bands.attrs))
    return pd.concat(frames, ignore_index=True)


def ranked(bands: xr.Dataset, *, truth: str = "soft") -> list[tuple[str, float]]:
    """Methods by their error at the largest size, smallest first: the expected error, or where there is none the mean
    over the repetitions.
    """
    own = bands.sel(truth_kind=truth).isel(size=-1)
    error = own["expected"].fillna(own["mean"])
    names = error["mechanism"].values.tolist()
    return sorted(zip(names, error.values.tolist(), strict=True), key=lambda pair: pair[1])


def print_releases(panels: Mapping[str, xr.Dataset]) -> None:
    """Mean squared errors by method and size for every setting."""
    console = _console()
    for title, bands in panels.items():
        shown = Table("method", box=SIMPLE_HEAD, title=title, title_justify="left")
        sizes = bands["size"].values.tolist()
        for head in (*(f"n = {size:,}" for size in sizes), "expected", "to the hard truth"):
            shown.add_column(head, justify="right")
        for name in bands["mechanism"].values.tolist():
            soft, hard = (bands.sel(truth_kind=kind, mechanism=name) for kind in ("soft", "hard"))
            shown.add_row(
                name,
                *(f"{value:.3g}" for value in soft["mean"].values),
                f"{float(soft['expected'][-1]):.3g}",
                f"{float(hard['mean'][-1]):.3g}",
            )
        console.print(shown)
    first = next(iter(panels.values())).attrs
    console.print(
        f"\nMean squared errors over {first['repetitions']} repetitions and {first['queries']} queries (times the "
        "queries: the ASE), relative to the soft truth; expected: in closed form at the largest n, nan where there is "
        "none. k queries cost a user k times epsilon, except input_perturbation: one noisy secret answers all.",
        highlight=False,
    )


def print_rankings(expected: Mapping[str, xr.Dataset]) -> None:
    """The methods of every setting by the error expected at its largest size, best first."""
    shown = Table("setting", "users", "mean squared error in closed form, least first", box=SIMPLE_HEAD)
    for title, bands in expected.items():
        order = " < ".join(f"{name} {error:.2g}" for name, error in ranked(bands) if math.isfinite(error))
        shown.add_row(title, f"{int(bands['size'][-1]):,}", order)
    _console().print(shown, highlight=False)


def print_claims(claims: Sequence[Claim]) -> None:
    """What the paper says of these settings, whether our figures agree, and where they do not."""
    shown = Table("paper 002", "here", "ratio", "not at", box=SIMPLE_HEAD)
    for claim in claims:
        ratios = list(claim.ratios.values())
        between = f"{min(ratios):.3g}" if len(ratios) == 1 else f"{min(ratios):.3g} to {max(ratios):.3g}"
        missed = "; ".join(f"{name}: {claim.ratios[name]:.3g}" for name in claim.failing)
        shown.add_row(claim.sentence, "no" if claim.failing else "yes", between, missed)
    _console().print(shown, highlight=False)


def print_comparison(table: pd.DataFrame) -> None:
    """The lines of `release_comparison.release_rows`."""
    shown = Table("mechanism", box=SIMPLE_HEAD, collapse_padding=True, pad_edge=False)
    for name in table.columns[1:]:
        head = f"mean of {float(name[8:]):g}" if name.startswith("mean_of_") else name.replace("_", " ")
        shown.add_column(head, justify="right")
    for line in table.itertuples(index=False):
        shown.add_row(line[0], *("-" if pd.isna(value) else f"{value:.3g}" for value in line[1:]))
    _console().print(shown)


def _console() -> Console:
    console = Console()
    console.width = max(console.width, _WIDTH)
    return console
