"""Points in Parquet files, read and written in parts (extra `parquet`).

A geometry column of GeoParquet 1.1 holds points in WKB, in the coordinate system of its metadata, by default longitude
and latitude (OGC:CRS84). Reports on Earth are written with such a column.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from mechdesign.base.arrays import Points
from mechdesign.base.files import readable
from mechdesign.base.log import log_note
from mechdesign.base.optional import import_optional
from mechdesign.errors import FileFormatError
from mechdesign.output.point_files.parts import ROWS, Part, PointFormat, ReportedPart

_POINT = np.dtype([("order", "u1"), ("kind", "<u4"), ("x", "<f8"), ("y", "<f8")])  # a point in WKB: 21 bytes
GEOMETRY = "geometry"


def point_wkb(degrees: Points) -> list[bytes | None]:
    """Points (b, 2) in WKB, None for nan."""
    records = np.zeros(len(degrees), _POINT)
    records["order"], records["kind"], records["x"], records["y"] = 1, 1, *degrees.T
    content, size = records.tobytes(), _POINT.itemsize
    has = np.isfinite(degrees.sum(axis=1)).tolist()
    return [content[size * k : size * (k + 1)] if one else None for k, one in enumerate(has)]


def geo_metadata(kinds: list[str], crs: Any = None) -> dict[bytes, bytes]:
    """The metadata of a GeoParquet file; crs: PROJJSON, None for longitude and latitude."""
    column: dict[str, Any] = {"encoding": "WKB", "geometry_types": kinds} | ({} if crs is None else {"crs": crs})
    document = {"version": "1.1.0", "primary_column": GEOMETRY, "columns": {GEOMETRY: column}}
    return {b"geo": json.dumps(document).encode()}


def read_parquet(path: Path, *, crs: str | None = None, on_note: Callable[[str], None] = log_note) -> Iterator[Part]:
    """Yield the rows of a file in parts."""
    import pandas as pd

    parquet = import_optional("pyarrow.parquet", "parquet")
    with readable(path, "points"), parquet.ParquetFile(path) as file:
        stored = json.loads((file.schema_arrow.metadata or {}).get(b"geo", b"{}"))
        column = stored.get("primary_column")
        system = stored.get("columns", {}).get(column, {}).get("crs")
        first = 1
        for batch in file.iter_batches(batch_size=ROWS):
            frame, degrees = batch.to_pandas(types_mapper=pd.ArrowDtype), None
            if column is not None:
                degrees = _degrees(batch.column(column).to_pylist(), system, path)
                frame = frame.drop(columns=column)
            yield Part(frame=frame, first=first, degrees=degrees)
            first += len(frame)


def _degrees(geometries: list[bytes | None], system: Any, path: Path) -> Points:
    """Longitude and latitude (b, 2) of points in WKB, nan for None."""
    points = np.full((len(geometries), 2), np.nan)
    for k, content in enumerate(geometries):
        if content is None:
            continue
        if len(content) < _POINT.itemsize or content[:3] not in (b"\x01\x01\x00", b"\x00\x00\x00"):
            raise FileFormatError("must hold points in WKB", field="points", value=path)
        points[k] = np.frombuffer(content, "<f8" if content[0] else ">f8", 2, offset=5)
    if system is not None:
        pyproj = import_optional("pyproj", "geo")
        transform = pyproj.Transformer.from_crs(pyproj.CRS.from_user_input(system), "OGC:CRS84", always_xy=True)
        has = np.isfinite(points).all(axis=1)
        points[has] = np.column_stack(transform.transform(points[has, 0], points[has, 1]))
    return points


def write_parquet(path: Path, parts: Iterable[ReportedPart]) -> None:
    """Write reports, with a geometry column where they lie on Earth."""
    import pyarrow as pa
    from pyarrow import parquet

    writer, schema = None, None
    try:
        for part in parts:
            try:
                table = pa.Table.from_pandas(part.frame, schema=schema, preserve_index=False)
            except pa.ArrowException as error:
                message, remedy = f"has a column of several types ({error})", "write .csv"
                raise FileFormatError(message, field="points", remedy=remedy) from error
            schema = table.schema
            if part.degrees is not None:
                table = table.append_column(GEOMETRY, pa.array(point_wkb(part.degrees), pa.binary()))
                table = table.replace_schema_metadata(geo_metadata(["Point"]))
            else:
                table = table.replace_schema_metadata(None)
            writer = parquet.ParquetWriter(path, table.schema, compression="zstd") if writer is None else writer
            writer.write_table(table)
    finally:
        if writer is not None:
            writer.close()


PARQUET = PointFormat(
    read=read_parquet, write=write_parquet, require=lambda: import_optional("pyarrow.parquet", "parquet")
)
