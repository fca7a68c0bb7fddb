"""`mechdesign plot`: a picture of a file."""

from pathlib import Path
from typing import Annotated

import typer

from mechdesign.cli.options import JsonOption, OverwriteOption, whole


def plot(
    file: Annotated[Path, typer.Argument(help="A mechanism, sweep or diagnosis file (NetCDF).")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Picture to draw: .png, .pdf or .svg.")],
    secret: Annotated[list[int] | None, whole("--secret", help="Draw the row of this secret; may be repeated.")] = None,
    over: Annotated[
        Path | None,
        typer.Option("--over", help="GeoJSON of lines or borders, such as coast or streets, to draw on maps."),
    ] = None,
    overwrite: OverwriteOption = False,
    as_json: JsonOption = False,
) -> None:
    """Draw a mechanism (levels, prior, losses, rows or answers), a sweep or a diagnosis."""
    from mechdesign.output.pictures.plot import load_drawable, save_plot
    from mechdesign.output.terminal import printing

    written = save_plot(load_drawable(file), output, overwrite=overwrite, secrets=secret, over=over)
    if as_json:
        printing.print_json({"file": str(written)})
    else:
        printing.note(f"wrote {written}")
