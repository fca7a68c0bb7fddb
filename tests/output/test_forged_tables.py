"""Tables that were forged, each with the right checksum: refused for its reason, and what is proved is true.

A file is put together from the texts of a genuine one, some of them changed (`Forgery`); `holds` finds a second time
what is true of them.
"""

from __future__ import annotations

import contextlib
import copy
import json
import random
from functools import cache

import pytest
from fixtures.export_mechanisms import MAKERS, Forgery, exportable, factored_export, joined_text, split_text
from fixtures.rows import few_by_default
from fixtures.table_oracles import holds

import mechdesign as md
from mechdesign.verification import verify_table

SUFFIXES = pytest.mark.parametrize("suffix", ["csv", "json"])
HUGE = "1" * 10**6
EDITED = ["line", "plane", "all pairs", "discrete", "holes", "levels", "roads", "graph", "nothing"]
SIGNS = '0123456789.-+eExp_ \t\r\x00"[]{},:#\n\uff11\u202e\ud800\u00e9'


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """The parts of a genuine export by name; "factored" has row sums of its own, "degrees" four coordinates."""
    folder = tmp_path_factory.mktemp("genuine")

    @cache
    def honest_export(name):
        mechanism = factored_export() if name == "factored" else exportable("park" if name == "degrees" else name)
        path = md.export(mechanism, folder / f"{name}.csv", degrees=name == "degrees")
        return Forgery.of(path)

    return lambda name: copy.deepcopy(honest_export(name))


@pytest.fixture
def verdict_of(tmp_path, capsys):
    """The exit code of the verifier for a forgery, or for the text or bytes of a file, and what it prints."""

    def judge(forged, suffix):
        path = tmp_path / f"t.{suffix}"
        path = forged.write(path) if isinstance(forged, Forgery) else split_text(forged, path)
        code = verify_table.main([str(path)])
        printed = capsys.readouterr().out
        assert printed.count("\nproved:") == (code == 0)
        assert len(printed) < 10_000
        return code, printed

    return judge


@pytest.mark.parametrize("suffix", few_by_default(["csv", "json"], "csv"))
@pytest.mark.parametrize("name", [*MAKERS, "degrees"])
def test_put_together_unchanged_the_parts_are_the_file(tmp_path, parts, verdict_of, name, suffix):
    path = md.export(
        exportable("park" if name == "degrees" else name), tmp_path / f"t.{suffix}", degrees=name == "degrees"
    )
    whole = parts(name).write(tmp_path / f"whole.{suffix}")
    agreed = parts(name).agree().write(tmp_path / f"agreed.{suffix}")
    assert joined_text(whole) == joined_text(agreed) == joined_text(path)
    assert holds(parts(name))
    assert verify_table.faults_of(verify_table.read(path)) == []
    assert verdict_of(joined_text(path), suffix)[0] == 0


def edge(text):
    """A forgery of the first edge, whose tail, head and length in quotes {text} may name."""

    def forge(f):
        u, v, length = f.edge_list()[0]
        f.edges[0] = text.replace("TAIL", str(u)).replace("HEAD", str(v)).replace("LENGTH", json.dumps(length))
        with contextlib.suppress(ValueError, TypeError, OverflowError):
            f.agree()

    return forge


def as_length(text):
    return edge(f"[TAIL, HEAD, {text}]")


def as_ends(text):
    return edge(f"[{text}, LENGTH]")


def again(f):
    u, v, length = f.edge_list()[0]
    f.edges.append(json.dumps([v, u, length]))
    f.agree()


def every_edge(change):
    def forge(f):
        f.edges = [json.dumps([u, v, change(float.fromhex(length)).hex()]) for u, v, length in f.edge_list()]
        f.agree()

    return forge


def without(*pairs):
    """A forgery that lists fewer edges, and says so."""

    def forge(f):
        f.edges = [text for text, (u, v, _) in zip(f.edges, f.edge_list(), strict=True) if (u, v) not in pairs]
        f.agree()

    return forge


def claims(part, **changes):
    """A forgery of a part of the claim."""

    def forge(f):
        claim = f.claim
        f.claim = claim | {part: claim[part] | changes}

    return forge


def smaller(share, name="multiplier"):
    """A forgery of a number of the metric, smaller by a share of it."""

    def forge(f):
        metric = f.claim["metric"]
        claims("metric", **{name: metric[name] * (1 - share)})(f)

    return forge


def lower(share):
    """A forgery of the map of levels, lower by a share of it."""

    def forge(f):
        level = f.claim["metric"]["level"]
        eps = [[at * (1 - share) for at in row] for row in level["eps"]]
        claims("metric", level=level | {"eps": eps})(f)

    return forge


def set_text(name, text):
    return lambda f: f.said.update({name: text})


def mass(text):
    def forge(f):
        f.masses[0][0] = text.replace("MASS", f.masses[0][0])

    return forge


def place(text):
    def forge(f):
        f.secrets[1][0] = text

    return forge


def fewer(f):
    f.secrets.pop()
    f.masses.pop()


HEX = "an edge must be two integers and an exact float in hex"
NONE = "error:    "
LOOSE = {
    HEX: [
        *map(as_length, ["0.9", "true", "null", "1", "0", '["0x1p-1"]']),
        *map(as_length, ['"10"', '"0.9"', '"0X1p0"', '" 0x1p-1"', '"Inf"']),
        *map(as_length, [r'"0x1p-1\n"', '"0x1p-1"', '"0x1.0p-1"', '"+0x1.0000000000000p-1"', '"0x1.0000000000000P-1"']),
        *map(as_ends, ["0, true", "0.0, 1", '"0", "1"', '"0_0", 1', "[0], 1", "0, null"]),
        edge('"abc"'),
    ],
    "invalid or duplicate edge": [
        *map(as_length, ['"inf"', '"nan"', '"-0x0.0p+0"', '"-0x1.0000000000000p-1"']),
        *map(as_ends, ["0, 0", "0, 5", "-1, 0", "1, 2"]),
        again,
    ],
    "not a mechanism table": [
        *map(as_length, ['""', '"0x1p99999"', '"0x1p-1 x"', '"\uff11"', "01", "LENGTH, 0"]),
        *map(edge, ["{}", "[TAIL, HEAD]", "7", "null", '{"a": 1}', "["]),
        *(set_text("loss", text) for text in ("01", "1_0", "'a'", "[" * 10**5, "", "1 2")),
    ],
    "plain integer": [
        *map(as_ends, [f"0, {HUGE}", f"-{HUGE}, 1"]),
        *map(mass, ["0MASS", "+MASS", "--MASS", "0_MASS", "0xMASS", "MASS.", " MASS", "\u00a0MASS"]),
        *map(mass, ["", "\uff11", "\u0663", HUGE]),
        *(set_text("secrets", text) for text in (HUGE, f"-{HUGE}")),
    ],
    "plain finite number": [
        *(
            set_text("loss", text)
            for text in ("NaN", "Infinity", "-Infinity", "1e999", "-1e999", f"0.{HUGE}", "1e1000")
        ),
        *map(place, ["1e999", f"0.{HUGE}"]),
    ],
    "duplicate name": [set_text("loss", '{"a": [{"b": 1, "b": 1}]}'), set_text("loss", r'{"a": 1, "\u0061": 1}')],
    "missing field": [set_text("problem", "7"), lambda f: f.said.pop("program")],
    "unknown metric": [
        claims("metric", kind="no more than the distance"),
        claims("metric", multiplier="1"),
        claims("metric", multiplier=-1.0),
        claims("metric", multiplier=1e200),
        claims("metric", stencil=8.0),
        claims("metric", level={"eps": [[0.9, True], [0.9, 0.9]]}),
    ],
    "the denominator of the claim is not": [lambda f: setattr(f, "claim", f.claim | {"denominator": "2^63"})],
    NONE: [
        set_text("claim", "7"),
        set_text("unit", '"km, or whatever"'),
        claims("domain", plane={"latitude": "here", "longitude": 0.0}),
        set_text("claim", '"One report satisfies everything."'),
        lambda f: f.said.pop("claim"),
        *(lambda f, part=part: setattr(f, "claim", f.claim | {part: 7}) for part in ("metric", "domain", "positions")),
        claims("domain", shape=5),
        claims("domain", cell=["1.0"]),
        claims("domain", origin=[None]),
        claims("metric", level={"eps": []}),
        claims("metric", level={"eps": [[0.9, "0.9"], [0.9, 0.9]]}),
        *(set_text("secrets", text) for text in ("5.0", '"5"', "true", "-5", "[5]", "null", "5e0", "\uff10", "", "6")),
        *(set_text("reports", text) for text in ("5.0", '"5"', "true", "-5", "4", "0")),
        *(set_text("edges", text) for text in ("4.0", '"4"', "true", "-4", "3")),
        *map(
            place,
            ["nan", "1_0", "\uff11", "Infinity", "true", '"1.5"', "[1.5]", "", "1.5 1", "1.5, 0", "0x1p0", "+1.5"],
        ),
        set_text("coordinates", '"x, y"'),
        set_text("coordinates", '"x, y, longitude, latitude"'),
        set_text("coordinates", "7"),
        lambda f: f.secrets[1].append("0.0"),
        lambda f: f.reports[1].append("0.0"),
        lambda f: [point.extend(["0.0"] * 3) for point in f.secrets],
        fewer,
    ],
}
LOOSE_ROWS = [(forge, said) for said, forgeries in LOOSE.items() for forge in forgeries]


@SUFFIXES
@pytest.mark.parametrize(("forge", "said"), LOOSE_ROWS)
@pytest.mark.obligation("exported-table")
def test_ambiguous_tables_are_refused(parts, verdict_of, suffix, forge, said):
    forged = parts("line")
    forge(forged)
    code, printed = verdict_of(forged, suffix)
    assert code == 2
    assert said in printed


LONG = "nats long, which the claim does not allow"
UNTRUE = [
    (mass("-MASS"), "line", "secret 0: a mass is below 1"),
    (claims("domain", unit="m"), "line", "in nats per m but the coordinates are in km"),
    (set_text("unit", '"m"'), "line", "in nats per km but the coordinates are in m"),
    (set_text("unit", '"m"'), "holes", "in nats per km but the coordinates are in m"),
    (set_text("unit", '"1"'), "roads", "in nats per m but the coordinates are in 1"),
    (lower(1e-9), "line", LONG),
    (smaller(1e-9), "line", LONG),
    (smaller(1), "line", LONG),
    (claims("metric", stencil=7), "plane", "a metric of 7 neighbours needs a grid"),
    (claims("metric", stencil=26), "plane", "a metric of 26 neighbours needs a grid"),
    (claims("metric", stencil=16), "plane", "no edge joins the neighbours 0 and 5"),
    (claims("domain", shape=[9]), "plane", "different cells of a 9 grid"),
    (claims("domain", shape=[2, 5]), "plane", "different cells of a 2 x 5 grid"),
    (claims("domain", cell=[1.0, 0.0]), "plane", "different cells of a 3 x 3 grid"),
    (claims("domain", cell=[2.0, 2.0]), "plane", "different cells of a 3 x 3 grid"),
    (claims("domain", origin=[1.0, 0.0]), "plane", "different cells of a 3 x 3 grid"),
    (claims("domain", kind="points"), "plane", "a metric of 8 neighbours needs a grid"),
    (claims("metric", kind="discrete", epsilon=0.1), "plane", LONG),
    (lambda f: f.secrets.__setitem__(1, f.secrets[0]), "plane", "different cells of a 3 x 3 grid"),
    (without((0, 4)), "plane", "no edge joins the neighbours 0 and 4"),
    (without((0, 1)), "levels", "no edge joins the neighbours 0 and 1"),
    (every_edge(lambda length: 0.0), "line", LONG),
    (every_edge(lambda length: length / 2), "line", "inequalities are broken"),
    (every_edge(lambda length: length * (1 + 1e-8)), "line", LONG),
    (every_edge(lambda length: 1e300), "levels", LONG),
    (smaller(1e-2, "epsilon"), "holes", LONG),
    (smaller(1e-9), "holes", LONG),
    (smaller(1e-12), "holes", LONG),
    (every_edge(lambda length: length * (1 + 1e-11)), "holes", LONG),
    (place("7.36"), "holes", "different cells of a 4 x 5 grid"),
    (without((0, 1)), "holes", "no path of edges joins 0 and 1"),
    (without((0, 6)), "all pairs", "no path of edges joins 0 and 6"),
    (smaller(1e-11), "discrete", LONG),
    (smaller(1e-11, "epsilon"), "discrete", LONG),
    (every_edge(lambda length: length * (1 + 1e-11)), "discrete", LONG),
    (without((1, 3)), "discrete", "no path of edges joins 1 and 3"),
    (without((0, 1), (0, 6)), "graph", "do not connect"),
]


@pytest.mark.parametrize("suffix", few_by_default(["csv", "json"], "json"))
@pytest.mark.parametrize(("forge", "name", "said"), UNTRUE)
@pytest.mark.obligation("exported-table")
def test_a_claim_about_another_table_is_refused(parts, verdict_of, suffix, forge, name, said):
    forged = parts(name)
    forge(forged)
    code, printed = verdict_of(forged, suffix)
    assert code == 1
    assert said in printed


@pytest.mark.parametrize(
    ("forge", "said"),
    [
        (lambda f: f.sums.__setitem__(0, "0"), "ZeroDivisionError"),
        (lambda f: f.sums.__setitem__(0, "1" + f.sums[0]), "secret 0: the masses sum to"),
        (lambda f: f.sums.__setitem__(0, "1_0"), "plain integer"),
        (lambda f: f.sums.__setitem__(0, ""), "plain integer"),
        (lambda f: setattr(f, "sums", None), "the denominator of the claim is not"),
    ],
)
@pytest.mark.obligation("exported-table")
def test_sums_of_rows_are_read_as_strictly(parts, verdict_of, forge, said):
    forged = parts("factored")
    assert verdict_of(forged, "csv")[0] == 0
    forge(forged)
    code, printed = verdict_of(forged, "csv")
    assert code > 0
    assert said in printed


# Random edits, of a text, of what texts say, and of bytes.


def any_text(rng, f):
    """One sign more, less or another in one of the texts."""
    texts = rng.choice([f.edges, *f.masses, *f.secrets, *f.reports, f.said, f.said])
    at = rng.choice([*texts] if texts is f.said else range(len(texts)))
    k = rng.randrange(len(texts[at]) + 1)
    texts[at] = texts[at][:k] + rng.choice(["", rng.choice(SIGNS)]) + texts[at][k + rng.randrange(2) :]


def any_claim(rng, f):
    """Another number in the metric or the domain of the claim."""
    claim = f.claim
    spots = []

    def walk(held):
        for key, value in held.items() if isinstance(held, dict) else enumerate(held):
            if isinstance(value, dict | list):
                walk(value)
            elif isinstance(value, int | float):
                spots.append((held, key))

    walk(claim)
    held, key = rng.choice(spots)
    held[key] = rng.choice([held[key] * (1 + rng.choice([-1, 1]) * 10 ** rng.uniform(-14, 0)), 0, 8])
    f.claim = claim


def any_length(rng, f):
    at = rng.randrange(len(f.edges))
    u, v, length = f.edge_list()[at]
    longer = abs(float.fromhex(length) * (1 + rng.choice([-1, 1]) * 10 ** rng.uniform(-17, 1)))
    f.edges[at] = json.dumps([u, v, longer.hex()])


def any_edge(rng, f):
    """An edge dropped, turned round, listed again or led elsewhere."""
    at = rng.randrange(len(f.edges))
    u, v, length = f.edge_list()[at]
    other = rng.randrange(len(f.secrets) + 1)
    f.edges[at : at + 1] = rng.choice([[], [[v, u, length]], [[u, v, length]] * 2, [[u, other, length]]])
    f.edges = [text if isinstance(text, str) else json.dumps(text) for text in f.edges]


def any_mass(rng, f):
    """A mass that moves from one report to another."""
    row, most = rng.choice(f.masses), rng.choice([1, 2**20, 2**50, 2**61])
    if len(row) > 1:
        a, b = rng.sample(range(len(row)), 2)
        moved = rng.randrange(most) + 1
        row[a], row[b] = str(int(row[a]) - moved), str(int(row[b]) + moved)


def any_place(rng, f):
    at = rng.choice(f.secrets)
    at[0] = repr(float(at[0]) * (1 + rng.choice([-1, 1]) * 10 ** rng.uniform(-17, 0)))


def any_rows(rng, f):
    """Two secrets that change places, or rows, or the claims of other tables."""
    u, v = rng.sample(range(len(f.secrets)), 2)
    for texts in rng.choice([[f.secrets], [f.masses], [f.secrets, f.masses]]):
        texts[u], texts[v] = texts[v], texts[u]


KINDS = [any_text, any_claim, any_length, any_edge, any_mass, any_place, any_rows]


def count_verdicts(verdict_of, parts, suffix, seeds):
    """Files proved and refused among those with one to three edits; whatever is proved is true of the parts."""
    counts = {"proved": 0, "refused": 0}
    for seed in seeds:
        rng = random.Random(seed)
        forged = parts(rng.choice(EDITED))
        with contextlib.suppress(ValueError, TypeError, OverflowError):  # an edit made another one impossible
            for change in rng.choices(KINDS, k=rng.choice([1, 1, 2, 3])):
                change(rng, forged)
            if rng.random() < 0.7:
                forged.agree()
        code, printed = verdict_of(forged, suffix)
        counts["refused" if code else "proved"] += 1
        assert code or holds(forged), (seed, printed)
    return counts


@SUFFIXES
@pytest.mark.obligation("exported-table")
def test_whatever_is_proved_of_an_edited_table_is_true(parts, verdict_of, suffix):
    counts = count_verdicts(verdict_of, parts, suffix, range(50))
    assert min(counts.values()) > 2


@pytest.mark.exhaustive
@SUFFIXES
@pytest.mark.obligation("exported-table")
def test_whatever_is_proved_of_many_edited_tables_is_true(parts, verdict_of, suffix):
    assert min(count_verdicts(verdict_of, parts, suffix, range(1000, 21_000)).values()) > 1000


@SUFFIXES
def test_bytes_that_were_edited_end_in_an_answer(tmp_path, parts, verdict_of, suffix):
    rng, codes = random.Random(4), []
    for _ in range(200):  # a tenth of all seeds leave out a code in 40
        data = bytearray(joined_text(parts("plane").write(tmp_path / f"p.{suffix}")).encode())
        for _ in range(rng.choice([1, 1, 3])):
            at, length = rng.randrange(len(data) - 80), rng.choice([0, 1, 1, 30])
            data[at : at + length] = rng.choice([b"", rng.randbytes(rng.choice([1, 4])), data[-200:-100]])
        codes.append(verdict_of(bytes(data), suffix)[0])
    contradicted = {2} if suffix == "csv" else {1, 2}  # an edited mass differs from its probability
    assert contradicted <= set(codes) <= {0, 1, 2}
