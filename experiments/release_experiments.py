"""What the scripts of the three experiments of paper 002 share: their options, the run, and what becomes of it."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

import xarray as xr

from experiments.release_claims import Claim
from experiments.release_curves import plot_releases
from experiments.release_study import ReleaseStudy, expected_errors, release_bands, release_study
from experiments.releases import print_claims, print_rankings, print_releases, release_table
from experiments.studies import write_study
from mechdesign.output.pictures.plot import check_plot_target, save_figure
from mechdesign.output.terminal.printing import progress

Setting = tuple[ReleaseStudy, Mapping[str, float]]


def options(doc: str | None, name: str, *, data: bool = True) -> argparse.ArgumentParser:
    """A parser with --full, --repetitions, --seed, -o NAME.csv and --plot NAME.png, and --data where there are data."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true")
    if data:
        parser.add_argument("--data", type=Path)
    parser.add_argument("--repetitions", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-o", "--output", type=Path, default=Path(f"{name}.csv"))
    parser.add_argument("--plot", type=Path, default=Path(f"{name}.png"))
    return parser


def parsed(parser: argparse.ArgumentParser, given: Sequence[str] | None = None) -> argparse.Namespace:
    """The options, if the picture can be drawn. Raises: as `check_plot_target`, before any work is done."""
    found = parser.parse_args(given)
    check_plot_target(found.plot, overwrite=True)
    return found


def simulate(
    title: str, settings: Mapping[str, Setting], repetitions: int, sizes: Sequence[int]
) -> tuple[dict[str, xr.Dataset], dict[str, xr.Dataset]]:
    """The bands of every setting, and the errors expected at these sizes (those of the paper), in closed form.

    The figures of a setting become attributes. Settings of one seed share the noise that has no scale of its own yet,
    so that their curves deviate from the expected ones alike. Progress on stderr.
    """
    panels, expected = {}, {}
    with progress(title) as advance:
        for name, (study, figures) in settings.items():
            simulated = release_study(study, repetitions=repetitions)
            panels[name] = release_bands(simulated).assign_attrs(**figures)
            expected[name] = expected_errors(simulated, sizes).assign_attrs(**figures)
            advance(name)
    return panels, expected


def conclude(
    panels: Mapping[str, xr.Dataset],
    expected: Mapping[str, xr.Dataset],
    claims: Sequence[Claim],
    given: argparse.Namespace,
) -> None:
    """Print the errors and what the paper says of them, write the table and the picture."""
    print_releases(panels)
    print_rankings(expected)
    print_claims(claims)
    print(f"wrote {write_study(release_table(panels), given.output, overwrite=True)}")
    print(f"wrote {save_figure(plot_releases(panels), given.plot, overwrite=True)}")
