"""`mechdesign export`, `plot` and `problems`: a mechanism as a table, a picture of a file, and the shipped problems."""

from pathlib import Path
from typing import Annotated

import typer

from mechdesign.cli.options import FileArgument, JsonOption, OverwriteOption, whole
from mechdesign.cli.parsing import row_range


def export(
    file: FileArgument,
    output: Annotated[Path, typer.Option("-o", "--output", help="File to write: .csv, .json, .parquet or .compact.")],
    rows: Annotated[str | None, typer.Option("--rows", help="Secrets to write, as FIRST:END.")] = None,
    degrees: Annotated[bool, typer.Option("--degrees", help="Add longitude and latitude (extra geo).")] = False,
    with_verifier: Annotated[
        bool, typer.Option("--with-verifier", help="Write verify_table.py beside it, which needs Python alone.")
    ] = False,
    overwrite: OverwriteOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write a mechanism, or rows of it, as a table: CSV, JSON or Parquet; or a factored one as a compact map."""
    from mechdesign.mechanism.storage import load
    from mechdesign.output import printing
    from mechdesign.output.export import export as write_table

    with printing.progress(f"export {file.name}") as on_progress:
        written = write_table(
            load(file),
            output,
            rows=row_range(rows),
            degrees=degrees,
            with_verifier=with_verifier,
            overwrite=overwrite,
            on_progress=on_progress,
        )
    printing.show_file(written, as_json=as_json)


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
    from mechdesign.output.plot import load_drawable, save_plot
    from mechdesign.output.printing import show_file

    written = save_plot(load_drawable(file), output, overwrite=overwrite, secrets=secret, over=over)
    show_file(written, as_json=as_json)


def problems(as_json: JsonOption = False) -> None:
    """List the shipped problems and their parameters."""
    from mechdesign.output.printing import Block, show
    from mechdesign.problem.problem import shipped_problems

    shipped = shipped_problems()
    document = [{"problem": p.name, "summary": p.summary, "parameters": p.parameters} for p in shipped]
    blocks: list[Block] = []
    for entry in shipped:
        parameters = (f"--{name.replace('_', '-')}={value}" for name, value in entry.parameters.items())
        blocks += [f"{entry.name}: {entry.summary}", {"parameters": " ".join(parameters)}]
    show(document, [*blocks, "Solve one with: mechdesign solve NAME --PARAMETER VALUE"], as_json=as_json)
