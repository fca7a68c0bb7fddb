"""plot: pictures as files. A sweep is drawn by sweeps.py, a mechanism by maps.py, a diagnosis by diagnosis.py."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import xarray as xr

from mechdesign.base.arguments import asked
from mechdesign.errors import InputError, MechdesignError
from mechdesign.mechanism.schema import MECHANISMS
from mechdesign.mechanism.storage.files import check_target, load_sealed, write_atomically
from mechdesign.mechanism.stored import contradiction
from mechdesign.output.pictures.diagnosis import plot_diagnosis
from mechdesign.output.pictures.maps import plot_mechanism
from mechdesign.output.pictures.sweeps import plot_sweep
from mechdesign.output.tables.sweep import SWEEP
from mechdesign.solvers.eikonal.diagnosis import DIAGNOSIS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = (".png", ".pdf", ".svg")


def check_plot_target(path: str | Path, *, overwrite: bool = False) -> Path:
    """The path to draw to, if matplotlib is there, the suffix is .png, .pdf or .svg and `check_target` allows it.

    Raises: InputError, before any work is done.
    """
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise InputError(
            "needs matplotlib", field="plot", value=path, remedy="install the extra: pip install 'mechdesign[plot]'"
        ) from error
    target = check_target(path, overwrite=overwrite)
    if target.suffix.lower() not in KINDS:
        raise InputError(
            "unknown kind of picture",
            field="plot",
            value=target.name,
            remedy="use a name ending in " + ", ".join(KINDS),
        )
    return target


@asked
def load_drawable(path: str | Path) -> xr.Dataset:
    """Read a file that `save_plot` draws: a mechanism, a sweep or a diagnosis. Raises what `load` raises."""
    return load_sealed(path, *MECHANISMS.values(), SWEEP, DIAGNOSIS, what="a mechanism, sweep or diagnosis")


@asked
def save_plot(
    result: xr.Dataset | Figure | str | Path,
    path: str | Path,
    *,
    overwrite: bool = False,
    secrets: Sequence[int] | None = None,
    over: str | Path | None = None,
) -> Path:
    """Draw a mechanism, a sweep or a diagnosis to a file, atomically, or write a figure that was drawn.

    Parameters: result, a Dataset, whose schema says which picture it is, the path of such a file, or a matplotlib
    figure; secrets, the place numbers whose rows are drawn, and over, a GeoJSON file of lines: for mechanisms only.
    Raises: as `check_plot_target` and the pictures; InputError for anything else, and for secrets or lines without a
    mechanism; FileFormatError if the disk refuses.
    """
    target = check_plot_target(path, overwrite=overwrite)
    from matplotlib.figure import Figure

    given = load_drawable(result) if isinstance(result, (str, Path)) else result
    if isinstance(given, xr.Dataset) and given.attrs.get("schema") in MECHANISMS:
        return save_figure(plot_mechanism(given, secrets, over=over), target, overwrite=overwrite)
    for field, value in (("secret", secrets), ("over", over)):
        if value is not None:
            what = "rows" if field == "secret" else "map"
            raise InputError(f"is for the {what} of a mechanism", field=field, value=value, remedy="leave it out")
    return save_figure(given if isinstance(given, Figure) else _picture(given), target, overwrite=overwrite)


def save_figure(figure: Figure, path: str | Path, *, overwrite: bool = False) -> Path:
    """Write a figure to a file, atomically. Raises: as `check_plot_target`; FileFormatError if the disk refuses."""
    target = check_plot_target(path, overwrite=overwrite)
    write_atomically(target, lambda temporary: figure.savefig(temporary, format=target.suffix[1:].lower(), dpi=160))
    return target


def _picture(result: object) -> Figure:
    """The picture of a sweep or a diagnosis. Raises: VerificationError where the Dataset contradicts itself."""
    if not isinstance(result, xr.Dataset):
        raise InputError(
            "has no picture",
            field="result",
            value=type(result).__name__,
            remedy="draw a mechanism, a sweep or a diagnosis, or a figure of md.plot",
        )
    schema = result.attrs.get("schema")
    known = {SWEEP.name: plot_sweep, DIAGNOSIS.name: plot_diagnosis}
    if schema not in known:
        raise InputError(
            "has no picture", field="schema", value=schema, remedy="draw a mechanism, a sweep or a diagnosis"
        )
    try:
        return known[schema](result)
    except MechdesignError:
        raise
    except Exception as error:
        raise contradiction(error) from error
