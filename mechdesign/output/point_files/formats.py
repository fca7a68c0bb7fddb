"""The kinds of files of points by suffix. Capabilities add those of maps."""

from __future__ import annotations

from pathlib import Path

from mechdesign.base.registry import Registry
from mechdesign.errors import InputError
from mechdesign.output.point_files.csv_points import CSV, TSV
from mechdesign.output.point_files.parquet_points import PARQUET
from mechdesign.output.point_files.parts import COMPRESSED, PointFormat

POINT_FORMATS: Registry[PointFormat] = Registry(
    "point formats", {".csv": CSV, ".tsv": TSV, ".txt": CSV, ".parquet": PARQUET}
)


def point_format(path: Path, field: str) -> PointFormat:
    """The format of a file of points, by its suffix; of a text to read, by that before the one of a compression."""
    suffix = path.suffix.lower()
    if suffix in COMPRESSED and field != "output":
        suffix = Path(path.stem).suffix.lower()
        suffix = suffix if POINT_FORMATS.get(suffix) in (CSV, TSV) else path.suffix
    if suffix not in POINT_FORMATS:
        remedy = "use one of " + ", ".join(POINT_FORMATS)
        raise InputError("is not a known kind of file of points", field=field, value=path.name, remedy=remedy)
    return POINT_FORMATS[suffix]
