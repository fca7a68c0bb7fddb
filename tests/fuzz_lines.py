"""Command lines that are wrong, from tables: every option of every command with values of every bad kind, and the
damaged files that a command may be given. What is random comes from a seeded generator.
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field

UNREADABLE = "\udcff"  # how Python passes on a byte of the command line that is not UTF-8
ODD = [
    "", " ", UNREADABLE, "[/b]", "[red]x[/red]", "\x1b[2J", "\u202etxt", "x" * 5000, "--", "-", "\u22123", "\x07",
    "nan",
]  # fmt: skip
WHOLE = [
    *ODD, "1_0", "\uff11\uff10", "\u0663", "0x10", "1e3", "3.5", "-1", "-0", "0", "1", "99999999999", "9" * 400,
    "9" * 5000, "inf", "three", "1,000", " 3", "+4", "-9223372036854775808", "9223372036854775807",
    "18446744073709551616",
]  # fmt: skip
REAL = [
    *ODD, "1_0.5", "\uff11.5", "\u0660.\u0665", "inf", "-inf", "Infinity", "1e400", "-1e400", "1e-400", "1e308",
    "-1e308", "5e-324", "1e-300", "1e100", "-1e100", "1e-100", "1e9", "1e-9", "1e5000000000", "-1", "0", "-0", "0x1p3",
    "1,5", "one", "1e", ".", "1" * 400, "0." + "0" * 400 + "1",
]  # fmt: skip
WORD = [*ODD, "None", "best", "parsec", "NaN", "ζ", "../..", "{}", "%s", "\n", "a\nb"]
FILE = [
    *ODD, "absent.nc", "absent.csv", "absent.py", ".", "/", "..", "/dev/null", "/dev/zero", "/dev/full", "fifo.nc",
    "fifo.csv", "fifo.py", "folder.py", "folder.nc", "dangling.nc", "loop.nc", "loop.py", "loop.csv", "a" * 300 + ".nc",
    "a" * 300 + ".py", "a" * 300 + ".csv", UNREADABLE + ".nc", UNREADABLE + ".py", "table.csv/x.csv", "[/b].nc",
    "/proc/self/mem", "/proc/self/environ", "https://example.org/x.nc", "empty.nc", "empty.csv", "empty.py",
]  # fmt: skip
OUTPUT = [
    *ODD, ".", "/", "..", "/dev/null", "/dev/full", "/proc/x.nc", "nowhere/x.nc", "a" * 300 + ".nc", "fifo.nc",
    "fifo.csv", "folder.nc", "table.csv", "taken.nc", "dangling/x.nc", UNREADABLE + "/x.nc", "table.csv/x.nc", "x.foo",
    "x", ".nc", "[/b]/x.csv", "loop.nc",
]  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A command: its arguments, options that keep it small, and for every other option the bad values to try."""

    command: str
    arguments: tuple[str, ...] = ()
    small: dict[str, str] = field(default_factory=dict)
    options: dict[str, list[str]] = field(default_factory=dict)
    files: tuple[int, ...] = ()  # which arguments are files

    def words(self, changed: dict[str, str], arguments: tuple[str, ...] | None = None) -> list[str]:
        """The line with some options changed or added."""
        given = {**self.small, **changed}
        pairs = [word for name, value in given.items() for word in ((name, value) if value is not FLAG else (name,))]
        return [self.command, *(self.arguments if arguments is None else arguments), *pairs]


FLAG = "flag"
SOLVING = {"--gap": REAL, "--time-limit": REAL, "-o": OUTPUT}
MAP = {"--raster": FILE, "--slope": REAL, "--floor": REAL, "--extent": REAL, "--raster-unit": WORD, "--stencil": WHOLE}
ENTRIES = [
    Entry(
        command="solve", arguments=("line",), small={"--cells": "3"}, files=(0,),
        options={
            "--cells": WHOLE, "--epsilon": REAL, "--cell": REAL, "--unit": WORD, "--program": WORD,
            "--worst-loss": REAL, "--method": WORD, "--rounds": WHOLE, "--work": OUTPUT, **SOLVING,
        },
    ),
    Entry(command="solve", arguments=("line",), small={"--cells": "3", "--program": "bounded", "--worst-loss": "0.6"},
          options={"--worst-loss": REAL, **SOLVING}),
    Entry(command="solve", arguments=("line",),
          small={"--cells": "3", "--program": "eikonal", "--method": "factored", "--rounds": "5"},
          options={"--rounds": WHOLE, "--epsilon": REAL, "--work": OUTPUT, **SOLVING}),
    Entry(command="solve", arguments=("discrete",), small={"--secrets": "3"},
          options={"--secrets": WHOLE, "--epsilon": REAL}),
    Entry(command="solve", arguments=("euclidean",), small={"--cells": "2"},
          options={"--cells": WHOLE, "--epsilon": REAL, "--cell": REAL, "--unit": WORD, "--loss": WORD}),
    Entry(command="solve", arguments=("flat",), small={"--cells": "2"},
          options={"--cells": WHOLE, "--epsilon": REAL, "--cell": REAL, "--stencil": WHOLE}),
    Entry(command="solve", arguments=("philadelphia",), small={"--cells": "2"}, options={"--cells": WHOLE, **MAP}),
    Entry(command="solve", arguments=("northeast",), small={"--cells": "2", "--points": "people.csv"},
          options={"--cells": WHOLE, "--inhabitants": REAL, "--stencil": WHOLE, "--latitude": REAL, "--longitude": REAL,
                   "--points": FILE, "--cell": REAL, "--nats": REAL, "--least": REAL, "--most": REAL}),
    Entry(command="solve", arguments=("neighbourhoods",), small={"--cells": "4", "--labels": "2"},
          options={"--cells": WHOLE, "--labels": WHOLE, "--stencil": WHOLE, "--extent": REAL, "--loss": WORD,
                   "--label-map": FILE}),
    Entry(command="solve", arguments=("income",), small={"--cells": "4", "--outputs": "3"},
          options={"--threshold": REAL, "--epsilon": REAL, "--cells": WHOLE, "--outputs": WHOLE}),
    Entry(command="solve", arguments=("streets",), small={"--nodes": "6"},
          options={"--nodes": WHOLE, "--seed": WHOLE, "--epsilon": REAL, "--prior": WORD, "--loss": WORD,
                   "--nodes-file": FILE, "--edges-file": FILE, "--unit": WORD, "--largest-component": WORD}),
    Entry(command="solve", arguments=("paris",), small={"--cells": "2", "--epsilon": "0.004"},
          options={"--cells": WHOLE, "--epsilon": REAL, "--distance": REAL, "--prior": WORD, "--checkins": FILE}),
    Entry(command="compare", arguments=("line",), small={"--cells": "2"}, files=(0,),
          options={"--cells": WHOLE, "--epsilon": REAL, "--only": WORD, "--with": FILE, **SOLVING}),
    Entry(command="compare", arguments=("euclidean",), small={"--cells": "2"},
          options={"--epsilon": REAL, "--cell": REAL, "--loss": WORD}),
    Entry(command="compare", arguments=("line",), small={"--cells": "2", "--scales": "1,2"}, files=(0,),
          options={"--cells": WHOLE, "--epsilon": REAL, "--with": FILE, **SOLVING,
                   "--scales": [*REAL, "1:2", "1:2:1", "2:1:3", "1:x:3", "1:2:1_0", "1:2:1e9", "1,1", "1,,2"]}),
    Entry(command="verify", arguments=("line.nc",), files=(0,)),
    Entry(command="audit", arguments=("table.csv",), small={"--metric": "discrete", "--epsilon": "1"}, files=(0,),
          options={"--metric": [*WORD, *FILE], "--epsilon": REAL, "--loss": WORD, "-o": OUTPUT}),
    Entry(command="audit", arguments=("table.csv",),
          small={"--metric": "euclidean", "--epsilon": "1", "--unit": "km", "--grid": "2", "--cell": "1"},
          options={"--epsilon": REAL, "--unit": WORD, "--cell": REAL, "--places": FILE, "--reports": FILE,
                   "--grid": [*WHOLE, "2x0", "1x2", "100000x100000", "2x\uff11", "x", "2x2x2x2",
                              "999999999x999999999"]}),
    Entry(command="audit", arguments=("table.csv",),
          small={"--metric": "euclidean", "--within": "2", "--factor": "2", "--unit": "km", "--places": "places.csv"},
          options={"--within": REAL, "--factor": REAL, "--epsilon": REAL}),
    Entry(command="audit", arguments=("table.csv",), small={"--metric": "line", "--cells": "2"},
          options={"--cells": WHOLE, "-o": OUTPUT}),
    Entry(command="audit", arguments=("table.csv",), small={"--metric": "two.nc"}, options={"-o": OUTPUT}),
    Entry(command="audit", arguments=("webkit-grid",), options={"--metric": WORD, "-o": OUTPUT}),
    Entry(command="export", arguments=("line.nc",), small={"-o": "x.csv"}, files=(0,),
          options={"-o": OUTPUT, "--rows": [*WHOLE, "0:1:2", "1:0", "0:99", "-1:2", "0:\uff11", ":", "0:1_0", "a:b"],
                   "--degrees": [FLAG], "--with-verifier": [FLAG]}),
    Entry(command="export", arguments=("line.nc",), small={"-o": "web"}, files=(0,),
          options={"-o": OUTPUT, "--overwrite": [FLAG]}),
    Entry(command="export", arguments=("day.json",), small={"-o": "web"}, options={"-o": OUTPUT}),
    Entry(command="session", arguments=("create", "x.session", "day.json"), small={"--limit": "4"}, files=(2,),
          options={"--limit": REAL, "--window": [*WORD, "0d", "25h", "99999d", "1_0", "7", "-7"]}),
    Entry(command="session", arguments=("report", "day.session"), small={"--tick": "1", "--secret": "1"}, files=(1,),
          options={"--tick": [*ODD, "1_0", "3.5", "-1", "9" * 400, "three"], "--secret": WHOLE, "--at": REAL,
                   "--lon": REAL, "--lat": REAL, "--no-fix": [FLAG]}),
    Entry(command="session", arguments=("account", "day.session"), files=(1,)),
    Entry(command="session", arguments=("design",),
          small={"--box": "2.34,48.85,2.36,48.87", "--cell": "700", "--ticks": "4", "--simulated": "1", "--nats": "3",
                 "-o": "x.json"},
          options={"--box": [*ODD, "1,2,3", "2,48,2,49", "2,49,3,48", "a,b,c,d"],
                   "--forbidden": FILE, "--cell": [*ODD, "inf", "-1", "0", "1e-9", "1e400"],
                   "--nats": [*ODD, "inf", "-1", "0", "1e400"], "--within": [*ODD, "inf", "-1", "0"],
                   "--ticks": [*ODD, "3.5", "-1", "0", "9" * 400], "--simulated": [*ODD, "3.5", "-1", "0", "9" * 400],
                   "-o": OUTPUT}),
    Entry(command="sample", arguments=("line.nc",), small={}, files=(0,),
          options={"--secret": WHOLE, "--at": REAL, "--lon": REAL, "--lat": REAL, "-n": WHOLE, "--seed": WHOLE}),
    Entry(command="sample", arguments=("line.nc",), small={"--secret": "0"},
          options={"-n": WHOLE, "--seed": WHOLE, "--at": REAL}),
    Entry(command="sample", arguments=("factored.nc",), small={"--secret": "0"},
          options={"-n": WHOLE, "--seed": WHOLE, "--secret": WHOLE}, files=(0,)),
    Entry(command="sample", arguments=("area.nc",), small={"--lon": "2.34", "--lat": "48.86"},
          options={"--lon": REAL, "--lat": REAL, "-n": WHOLE}),
    Entry(command="sample", arguments=("area.nc",), small={"--at": "0 0"},
          options={"--at": [*REAL, "2.35 48.86", "48.86 2.35", "2 48", "200 99", "1e9 1e9"]}),
    Entry(command="export", arguments=("line.nc",), small={"-o": "x.png"}, files=(0,),
          options={"-o": OUTPUT, "--rows": [*WHOLE, "1,2", "1,,2", ","]}),
    Entry(command="export", arguments=("line.nc",), small={"-o": "x.html"}, files=(0,), options={"-o": OUTPUT}),
    Entry(command="area", arguments=("park.geojson",), files=(0,),
          small={"--cell": "600", "--within": "600", "--factor": "8", "-o": "a.nc", "--program": "planar-laplace"},
          options={"--cell": REAL, "--within": REAL, "--factor": REAL, "--unit": WORD, "--forbidden": FILE,
                   "--prior": FILE, "--people": REAL, "--loss": WORD, "--nodata-is": REAL, "--prior-is": WORD,
                   "--program": WORD, "--positions": [*WORD, "any", "inside", "cells"], **SOLVING}),
    Entry(command="area", arguments=("park.geojson",),
          small={"--cell": "600", "-o": "a.nc", "--levels-from": "map.asc", "--nats-per-cell": "9e3"},
          options={"--prior": FILE, "--within": REAL, "--factor": REAL, "--levels-from": FILE, "--nats-per-cell": REAL,
                   "--variable": WORD, "--crs": WORD, "--nodata-is": REAL, "--prior-is": [*WORD, "counts"]}),
    Entry(command="area", arguments=("park.geojson",),
          small={"--cell": "400", "-o": "a.nc", "--levels-from": "people.csv", "--people": "5",
                 "--program": "planar-laplace"},
          options={"--levels-from": FILE, "--people": REAL, "--radii": [*REAL, "1,2,3", "2,1", "1,x"],
                   "--factor": REAL, "--within": REAL}),
    Entry(command="area", arguments=(), small={"--box": "2.34,48.85,2.36,48.87", "--cell": "600", "--within": "600",
          "--factor": "8", "-o": "a.nc", "--program": "planar-laplace"},
          options={"--box": [*REAL, "1,2,3", "2,48,2,49", "2,49,3,48", "a,b,c,d", "1,2,3,4,5"], "--within": REAL,
                   "--factor": REAL, "--epsilon": REAL}),
    Entry(command="level", small={"--within": "200", "--factor": "2"},
          options={"--within": REAL, "--unit": WORD, "--factor": REAL, "--reports": WHOLE, "--interest": REAL}),
    Entry(command="level", small={"--within": "200", "--factor": "8", "--interest": "3"},
          options={"--within": REAL, "--interest": REAL, "--reports": WHOLE}),
    Entry(command="level", small={"--within": "200", "--epsilon": "2"}, options={"--epsilon": REAL}),
    Entry(command="plan", arguments=("two.nc",), small={"--areas": "areas.csv", "--respondents": "900"}, files=(0,),
          options={"--areas": [*FILE, "1x1", "0x2", "2x2", "x", "9999999x1"], "--respondents": WHOLE, "--error": REAL,
                   "--with": FILE, "--name-field": WORD, "--confidence": REAL, "--levels": REAL,
                   "-o": OUTPUT}),
    Entry(command="plan", arguments=("paris",),
          small={"--areas": "2x2", "--respondents": "900", "--cells": "2", "--epsilon": "0.004"},
          options={"--levels": [*REAL, "0.1,", "0.1,x", "1e-9,0.1"], "--respondents": WHOLE,
                   "--error": REAL}),
    Entry(command="estimate", arguments=("reports.csv", "two.nc"), small={"--areas": "areas.csv"}, files=(0, 1),
          options={"--areas": [*FILE, "1x1", "2x2"], "--name-field": WORD,
                   "--confidence": REAL, "--against": FILE, "-o": OUTPUT}),
]  # fmt: skip

CONSUMERS = {  # which commands read a file of a kind; the mutated one stands for @
    "two.nc": ["compare line --cells 2 --with @", "compare line --cells 2 --scales 1,2 --with @"],
    "line.nc": ["verify @", "sample @ --secret 0", "export @ -o x.csv", "export @ -o x.json", "export @ -o x.png",
                "export @ -o x.html", "audit table.csv --metric @", "solve philadelphia --cells 2 --raster @"],
    "factored.nc": ["verify @", "sample @ --secret 0", "export @ -o x.csv", "export @ -o x.png", "export @ -o x.html"],
    "area.nc": ["verify @", "sample @ --lon 2.34 --lat 48.86", "export @ --degrees -o x.csv"],
    "curve.nc": ["export @ -o x.png", "export @ -o x.html", "verify @"],
    "map.nc": ["solve philadelphia --cells 2 --raster-unit m --raster @", "solve neighbourhoods --label-map @"],
    "map.asc": ["solve philadelphia --cells 2 --raster @", "area park.geojson --cell 600 "
                "--levels-from @ --nats-per-cell 9e3 -o a.nc", "solve neighbourhoods --cells 4 --label-map @"],
    "map.tif": ["solve philadelphia --cells 2 --raster-unit m --raster @",
                "area park.geojson --cell 600 --within 600 --factor 8 --prior @ -o a.nc"],
    "table.csv": ["audit @ --metric discrete --epsilon 1 -o x.nc", "audit table.csv --metric euclidean --epsilon 1 "
                  "--unit km --places @", "verify @"],
    "table.npy": ["compare line --cells 2 --with @", "audit @ --metric discrete --epsilon 1"],
    "table.parquet": ["audit @ --metric discrete --epsilon 1"],
    "places.csv": ["audit table.csv --metric euclidean --epsilon 1 --unit km --places @",
                   "audit table.csv --metric euclidean --epsilon 1 --unit km --places places.csv --reports @"],
    "nodes.csv": ["solve streets --nodes-file @ --edges-file edges.csv"],
    "edges.csv": ["solve streets --nodes-file nodes.csv --edges-file @"],
    "checkins.txt": ["solve paris --cells 2 --epsilon 0.004 --prior checkins --checkins @"],
    "exported.json": ["verify @", "audit @ --metric discrete --epsilon 1"],
    "park.geojson": ["area @ --cell 600 --within 600 --factor 8 --program planar-laplace -o a.nc",
                     "area park.geojson --cell 600 --within 600 --factor 8 --forbidden @ -o a.nc"],
    "reports.csv": ["estimate @ two.nc --areas areas.csv", "estimate reports.csv two.nc --areas areas.csv --against @"],
    "areas.csv": ["estimate reports.csv two.nc --areas @", "plan two.nc --areas @ --respondents 900"],
    "day.json": ["verify @", "export @ -o web", "session create x.session @ --limit 4"],
    "day.session": ["session account @", "session report @ --tick 1 --secret 1"],
    "mine.py": ["solve @ -o x.nc", "compare @", "compare @ --scales 1,2", "audit table.csv --metric @"],
}  # fmt: skip


def systematic() -> list[list[str]]:
    """Every option of every entry with each of its bad values, and every file argument with each bad file."""
    lines = [
        entry.words({name: value}) for entry in ENTRIES for name, values in entry.options.items() for value in values
    ]
    for entry in ENTRIES:
        for at in entry.files:
            lines += [
                entry.words({}, (*entry.arguments[:at], value, *entry.arguments[at + 1 :])) for value in [*FILE, *WORD]
            ]
    return lines


def combined(rng: random.Random) -> list[str]:
    """An entry with up to three bad options, and mostly one word dropped, doubled, misspelt, added or moved."""
    entry = rng.choice(ENTRIES)
    names = rng.sample(sorted(entry.options), min(len(entry.options), rng.randint(0, 3)))
    words = entry.words({name: rng.choice(entry.options[name]) for name in names})
    at = rng.randrange(len(words))
    changes: list[Callable[[], list[str]]] = [
        lambda: words,
        lambda: words[:at] + words[at + 1 :],
        lambda: words[:at] + [words[at]] * 2 + words[at + 1 :],
        lambda: [*words[:at], words[at] + rng.choice("xX= -_"), *words[at + 1 :]],
        lambda: [*words[:at], rng.choice([*ODD, "--help", "-h", "--version", "-o", "--cells", "@file"]), *words[at:]],
        lambda: words[:at] + words[at:][::-1],
        lambda: [f"{a}={b}" for a, b in itertools.pairwise(words)],
    ]
    return rng.choice(changes)()


def mutated(content: bytes, rng: random.Random) -> bytes:
    """A damaged copy of a file."""
    size = max(len(content), 1)
    at = rng.randrange(size)
    numbers = list(re.finditer(rb"-?[0-9][0-9.eE+-]*", content[:20_000]))
    tokens = [
        b"nan",
        b"1e999",
        b"-1",
        b"0",
        b"1_0",
        "\uff11".encode(),
        b"",
        b"null",
        b'"x"',
        b"99999999999",
        b"1e308",
        b"-",
    ]

    def replaced() -> bytes:
        found = rng.choice(numbers) if numbers else None
        return content if found is None else content[: found.start()] + rng.choice(tokens) + content[found.end() :]

    def noisy() -> bytes:
        data = bytearray(content)
        for _ in range(rng.randint(1, 20)):
            data[rng.randrange(size)] = rng.randrange(256)
        return bytes(data)

    def flipped() -> bytes:
        data = bytearray(content)
        data[at] ^= 1 << rng.randrange(8)
        return bytes(data)

    kinds: list[Callable[[], bytes]] = [
        lambda: b"",
        lambda: content[:at],
        lambda: content[at:],
        lambda: content * 2,
        lambda: rng.randbytes(size),
        lambda: content[:at] + bytes(64) + content[at + 64 :],
        lambda: content + rng.randbytes(40),
        lambda: b"no such thing\n" * 20,
        lambda: b"[" * 100_000,
        lambda: content.decode("latin-1").encode("utf-16"),
        lambda: b"\xff\xfe\x00" + content,
        lambda: content.replace(b"\n", b"\r\n\x00"),
        lambda: content.replace(b"\n", b"\r"),
        lambda: content.replace(b"e", b"\xfc"),
        lambda: content.replace(b"\n", b",7\n"),
        flipped,
        flipped,
        noisy,
        noisy,
        replaced,
        replaced,
        replaced,
    ]
    return rng.choice(kinds)()
