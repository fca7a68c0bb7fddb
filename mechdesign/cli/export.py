"""`mechdesign export`: a mechanism as a table for other programs."""

from pathlib import Path
from typing import Annotated

import typer

from mechdesign.cli.options import FileArgument, JsonOption, OverwriteOption
from mechdesign.cli.parsing import row_range


def export(
    file: FileArgument,
    output: Annotated[Path, typer.Option("-o", "--output", help="File to write: .csv, .json, .parquet or .compact.")],
    rows: Annotated[str | None, typer.Option("--rows", help="Secrets to write, as FIRST:END.")] = None,
    degrees: Annotated[bool, typer.Option("--degrees", help="Add longitude and latitude (extra geo).")] = False,
    with_verifier: Annotated[
        bool, typer.Option("--with-verifier", help="Write verify_table.py beside it, which needs Python alone.")
    ] = False,
    with_sampler: Annotated[
        bool, typer.Option("--with-sampler", help="Write sample_table.mjs beside a .json, for JavaScript clients.")
    ] = False,
    overwrite: OverwriteOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write a mechanism, or rows of it, as a table: CSV, JSON or Parquet; or a factored one as a compact map."""
    from mechdesign.mechanism.storage.files import load
    from mechdesign.output.export.export import export as write_table
    from mechdesign.output.terminal import printing

    with printing.progress(f"export {file.name}") as on_progress:
        written = write_table(
            load(file),
            output,
            rows=row_range(rows),
            degrees=degrees,
            with_verifier=with_verifier,
            with_sampler=with_sampler,
            overwrite=overwrite,
            on_progress=on_progress,
        )
    if as_json:
        printing.print_json({"file": str(written)})
    else:
        printing.note(f"wrote {written}")
