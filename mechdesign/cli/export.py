"""`mechdesign export`: write a file as a table, picture, page, device map or client, by the suffix of the output."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from mechdesign.base.registry import Registry
from mechdesign.cli.options import JsonOption, OverwriteOption
from mechdesign.cli.values import row_range
from mechdesign.errors import InputError

_OUTPUT_HELP = (
    "The suffix decides. Tables: .csv, .json, .parquet. Cells on a map: .geojson, .gpkg, .tif. Integers for "
    "mechdesign-check: .proof. Pictures: .png, .pdf, .svg. A page that proves its own table: .html. A device map of a "
    "factored file: .compact. Without a suffix: the folder of a client for apps."
)
_FILES_HELP = "A mechanism, sweep, diagnosis, device map or session design; or an estimate, followed by its mechanisms."
_NAMES = {"from_place": "from"}  # options whose argument has another name
_FROM_HELP = "Cells: add the probability of each report from this place."
_CRS_HELP = "Cells: coordinate system of the polygons, such as EPSG:32633, or plane. Default: EPSG:4326."
LARGE_CSV = 10e6  # bytes
# Bytes of a line, measured: 94 for 1,392 cells of 200 m and for 144 cells of a raster, 58 where coordinates are short;
# 168 with degrees.
CSV_LINE, CSV_DEGREES = 95, 75
_ROWS_HELP = "Secrets to write (FIRST:END) or to draw (3,5)."


@dataclass(frozen=True, kw_only=True)
class Exporter:
    """A writer of one kind of output: write(file, target, **options) returns a JSON document and its text, or None."""

    write: Callable[..., tuple[Mapping[str, Any], str] | None]
    takes: frozenset[str] = frozenset()


def _write_table(file: Path, output: Path, *, rows: str | None, **options: Any) -> None:
    from mechdesign.mechanism.storage import load
    from mechdesign.output.export import export as write_table

    mechanism = load(file)
    if rows is None:
        _note_large_table(mechanism, output, options.get("degrees"))
    write_table(mechanism, output, rows=row_range(rows), **options)


def _note_large_table(mechanism: Any, output: Path, degrees: object) -> None:
    """Say the size of a large CSV table before it is written."""
    from mechdesign.output.text_tables import note

    if output.suffix.lower() != ".csv" or "mass" not in mechanism:
        return
    size = mechanism["mass"].size * (CSV_LINE + (CSV_DEGREES if degrees else 0))
    if size > LARGE_CSV:
        note(f"about {size / 1e6:.0f} MB: --rows FIRST:END writes a part, and .parquet is several times smaller")


TABLE = Exporter(write=_write_table, takes=frozenset({"rows", "degrees", "with_verifier"}))
EXPORTERS: Registry[Exporter] = Registry("exporters")  # by suffix; those of tables are `FORMATS`


def _exporter_of(output: Path, kind: str) -> Exporter:
    """The writer for the suffix of an output, of this kind where there is one."""
    suffix = output.suffix.lower()
    if kind == "designer" and f"{kind}{suffix}" not in EXPORTERS:
        raise InputError("is a page", field="designer", value=output, remedy="use a name ending in .html")
    if suffix not in EXPORTERS:
        from mechdesign.output.export import FORMATS

        if suffix not in FORMATS:
            known = ", ".join(sorted({name for name in (*FORMATS, *EXPORTERS) if name.startswith(".")}))
            raise InputError("unknown kind of output", field="output", value=output, remedy=f"use one of {known}")
    return EXPORTERS.get(f"{kind}{suffix}", EXPORTERS.get(suffix, TABLE))


# Options of typer stand in the signature: each is a word of the command.
def export(
    output: Annotated[Path, typer.Option("-o", "--output", help=_OUTPUT_HELP)],
    files: Annotated[list[Path] | None, typer.Argument(help=_FILES_HELP, metavar="FILE")] = None,
    designer: Annotated[
        bool,
        typer.Option("--designer", help="Without FILE: a page that designs a table of up to 64 cells in a browser."),
    ] = False,
    rows: Annotated[str | None, typer.Option("--rows", help=_ROWS_HELP)] = None,
    degrees: Annotated[bool, typer.Option("--degrees", help="Tables: add longitude and latitude (extra geo).")] = False,
    with_verifier: Annotated[
        bool,
        typer.Option(
            "--with-verifier", help="Tables: also write verify_table.py, which checks them and needs only Python."
        ),
    ] = False,
    over: Annotated[
        Path | None,
        typer.Option("--over", help="Pictures and pages: GeoJSON of lines to draw on the map, such as streets."),
    ] = None,
    bits: Annotated[
        int | None,
        typer.Option("--bits", help="Clients: round masses to 32 or 24 bits, and certify them again: a smaller file."),
    ] = None,
    title: Annotated[
        str | None, typer.Option("--title", help="Pictures and pages: the first line, such as the name of the place.")
    ] = None,
    from_place: Annotated[str | None, typer.Option("--from", metavar="LON,LAT", help=_FROM_HELP)] = None,
    cells: Annotated[
        bool, typer.Option("--cells", help="Parquet: write the cells as GeoParquet, not the table.")
    ] = False,
    crs: Annotated[str | None, typer.Option("--crs", metavar="SYSTEM", help=_CRS_HELP)] = None,
    overwrite: OverwriteOption = False,
    as_json: JsonOption = False,
) -> None:
    """Example: `mechdesign export rome.nc -o rome.html`.

    Write a file as a table, a picture, a page that proves itself, or a client for apps, by the suffix of -o.
    """
    from mechdesign.output import text_tables as printing

    [file, *mechanisms] = files or [Path()]
    # A table and a layer of cells have the suffix .parquet, a page of a file and one that designs .html.
    kind = "designer" if designer else "cells" if cells else ""
    if designer and files:
        raise InputError("designs in the browser, so it takes no file", field="designer", value=file)
    if not (designer or files):
        raise InputError("is missing", field="files", remedy="see mechdesign export --help")
    exporter = _exporter_of(output, kind)
    options: dict[str, Any] = {"rows": rows, "degrees": degrees, "with_verifier": with_verifier, "over": over}
    options |= {"title": title, "from_place": from_place, "cells": cells, "crs": crs}
    options["bits"] = bits
    options["mechanisms"] = mechanisms
    # An option of another kind is refused: ignored, it would seem to have worked.
    for name, value in options.items():
        if value and name not in exporter.takes:
            raise InputError(
                f"does not apply to {'the page that designs' if designer else output.suffix.lower() or 'a client'}",
                field=_NAMES.get(name, name.replace("_", "-")),
                value=output,
            )
    taken = {name: value for name, value in options.items() if name in exporter.takes}
    printing.note_compiling()
    with printing.progress(f"export {file.name or output.name}") as on_progress:
        written = exporter.write(file, output, overwrite=overwrite, on_progress=on_progress, **taken)
    if written is None:
        printing.show_file(output, as_json=as_json)
    else:
        document, words = written
        printing.show(document, [printing.Note(words)], as_json=as_json)
