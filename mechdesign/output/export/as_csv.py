"""CSV: one line per (secret, report) for any reader of plain tables; all else stands in comments.

    # mechdesign mechanism table; probability = mass / 2^62
    # unit: km
    # claim: "..."                    and so on: NAME: JSON VALUE
    secret,secret_x,report,report_x,mass
    0,0.5,0,0.5,2305843009213693952   all reports of secret 0, then of the next
    # edge: [0, 1, "0x1.8p-1"]        tail, head, length in nats, exact; one line per edge of the claim
    # patch: [0, 0, ..., "0x1.8p-1"]  where any position is drawn, for every cell: nine rows, four levels
    # content_sha256: "..."           of every byte before this line

Readers that drop lines starting with # see the table. A factored mechanism has a column row_sum after mass, and
probability = mass / row_sum. Every report of a row is there, so that sums can be checked.
"""

from __future__ import annotations

import csv
from pathlib import Path

from mechdesign.base.spreadsheets import escaped
from mechdesign.output.export.content import Content, SealedText, as_json


def write_csv(content: Content, path: Path) -> None:
    """Write the table, its comments and its edges. Cost: 0.7 microseconds per mass."""
    secret, report = [f"secret_{axis}" for axis in content.axes], [f"report_{axis}" for axis in content.report_axes]
    sums = ["row_sum"] if content.factored else []
    with SealedText(path, '# content_sha256: "', '"') as stream:
        stream.write(f"# mechdesign mechanism table; probability = mass / {'row_sum' if sums else '2^62'}\n")
        stream.write(f"# unit: {content.unit}\n")
        for name, value in content.comments.items():
            told = as_json(value)
            stream.write(f"# {name}: {escaped(told) if isinstance(value, str) else told}\n")
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["secret", *secret, "report", *report, "mass", *sums])
        for u, masses, total in content.masses():
            start, end = [u, *content.secrets[u]], [] if total is None else [total]
            writer.writerows([*start, y, *content.reports[y], mass, *end] for y, mass in enumerate(masses))
        for edge in content.edges:
            stream.write(f"# edge: {as_json(edge)}\n")
        for patch in content.patches:
            stream.write(f"# patch: {as_json(patch)}\n")
