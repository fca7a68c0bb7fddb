"""Parquet: the columns of the CSV, masses as uint64, for readers of large tables. The extra `parquet` brings pyarrow.

Columns: secret and report (int32), their coordinates (float64), mass (uint64); probability = mass / 2^62. The metadata
of the schema holds the comments of the CSV by name, `edge` as a JSON list of [tail, head, length in nats as an exact
hexadecimal float], and `content_sha256`: the SHA-256 of the other metadata as one JSON object, names sorted, without
blanks, followed by the little-endian bytes of every column in turn. Pages carry the format's own checksums.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mechdesign.base.memory import require_memory
from mechdesign.errors import InputError
from mechdesign.output.export.content import Content, as_json

if TYPE_CHECKING:
    import pyarrow as pa


def require_pyarrow(path: Path) -> None:
    """Raises: InputError where pyarrow is missing."""
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError as error:
        raise InputError(
            "needs pyarrow", field="output", value=path.name, remedy="pip install 'mechdesign[parquet]', or write .csv"
        ) from error


def write_parquet(content: Content, path: Path) -> None:
    """Write one table. Raises: SizeError where its columns do not fit in memory."""
    from pyarrow import parquet

    parquet.write_table(_table(content), path, compression="zstd", write_page_checksum=True)


def content_sha256(table: pa.Table) -> str:
    """The checksum that the schema of an unaltered table carries."""
    told = {key.decode(): value.decode() for key, value in table.schema.metadata.items() if key != b"content_sha256"}
    digest = hashlib.sha256(json.dumps(told, sort_keys=True, separators=(",", ":")).encode())
    for column in table.columns:
        values = column.to_numpy()
        digest.update(np.ascontiguousarray(values, values.dtype.newbyteorder("<")).tobytes())
    return digest.hexdigest()


def _table(content: Content) -> pa.Table:
    import pyarrow as pa

    n, m = len(content.rows), len(content.reports)
    require_memory(n, m, tables=4 + 2 * (len(content.axes) + len(content.report_axes)), what="a Parquet table")
    own, report = np.repeat(np.asarray(content.rows, np.int32), m), np.tile(np.arange(m, dtype=np.int32), n)
    columns = {"secret": own}
    columns |= {f"secret_{a}": np.array(content.secrets)[own, k] for k, a in enumerate(content.axes)}
    columns |= {"report": report}
    columns |= {f"report_{a}": np.array(content.reports)[report, k] for k, a in enumerate(content.report_axes)}
    columns |= {"mass": content.mechanism["mass"].values[content.rows].ravel()}
    told = {"unit": content.unit, "probability": "mass / 2^62", "edge": as_json(content.edges)}
    told |= {name: str(value) for name, value in content.comments.items()}
    table = pa.table(columns).replace_schema_metadata(told)
    return table.replace_schema_metadata({**told, "content_sha256": content_sha256(table)})
