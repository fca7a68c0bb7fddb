"""JSON: a table for programs that sample with integers, JavaScript included. One object with these names.

| name | value |
|---|---|
| format | "mechdesign/table/1" |
| unit, claim, budget, ... | the comments |
| secret_points, report_points | coordinates, (n, k) and (m, k), in `unit`, reports in `report_unit` if there is one |
| edge | the claim: [tail, head, length in nats as an exact hexadecimal float], each both ways |
| patch | where any position is drawn, for every cell: the nine rows around it, levels at its corners or its quarters' |
| mass | n strings: the m masses of a row in decimal, separated by blanks; probability = mass / 2^62 |
| content_sha256 | of every byte before this line, the last one |

Masses exceed 2^53, where JavaScript's numbers end: text.split(" ").map(BigInt) reads them exactly. All rows are there:
a client that asked for its own would tell where it is.
"""

from __future__ import annotations

from pathlib import Path

from mechdesign.output.export.content import Content, SealedText, as_json

FORMAT = "mechdesign/table/1"


def write_json(content: Content, path: Path) -> None:
    """Write one JSON object, at most 20 bytes per mass."""
    with SealedText(path, '"content_sha256": "', '"}') as stream:
        stream.write(f'{{"format": "{FORMAT}",\n')
        for name, value in {"unit": content.unit, **content.comments}.items():
            stream.write(f"{as_json(name)}: {as_json(value)},\n")
        for name, lines in {
            "secret_points": map(as_json, content.secrets),
            "report_points": map(as_json, content.reports),
            "edge": map(as_json, content.edges),
            **({"patch": map(as_json, content.patches)} if content.patches else {}),
            "mass": (f'"{" ".join(map(str, masses))}"' for _, masses, _ in content.masses()),
        }.items():
            stream.write(f"{as_json(name)}: [")
            for k, line in enumerate(lines):
                stream.write(",\n" * bool(k) + line)
            stream.write("],\n")
