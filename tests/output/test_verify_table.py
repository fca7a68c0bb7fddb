"""The verifier that is handed over: it agrees with both checks of the package, and refuses what was altered."""

from __future__ import annotations

import json
import math
import subprocess
import sys

import numpy as np
import pytest
from fixtures.export_mechanisms import (
    MAKERS,
    exportable,
    factored_export,
    flip_bit,
    joined_text,
    split_text,
    with_mass,
    write_unverified,
)
from fixtures.integer_oracles import reference_violations
from fixtures.problems import CASES, grid
from fixtures.random_columns import column_mechanism as columned
from fixtures.rows import few_by_default
from reference.checking import ROW_SUM
from reference.exact import lower_ratio

import mechdesign as md
from mechdesign import baselines
from mechdesign.extend import Edges
from mechdesign.mechanism.certificate import violations
from mechdesign.verification import verify_table

TRIALS = 200
LENGTHS = [0.0, 5e-324, 1e-300, 2.0**-61, 2.0**-60, 1e-9, math.log(2), 1.0, 42.9, 79.0]


def found_by_all(mass, edges):
    """The numbers of breaches found by the compiled check, its oracle, and the verifier."""
    rows = mass.tolist()
    triples = list(zip(edges.tail.tolist(), edges.head.tolist(), edges.length.tolist(), strict=True))
    breaches = verify_table.breaches(rows, [sum(row) for row in rows], triples)
    return violations(mass, edges), reference_violations(mass, edges), len(breaches)


def test_exponential_bound_equals_that_of_certificate():
    for length in [*LENGTHS, *(10 ** np.random.default_rng(0).uniform(-19, 1.9, 2000)).tolist()]:
        assert verify_table.lower_bound(length) == lower_ratio(length), length


@pytest.mark.parametrize("length", [81.0, 128.0, 1e3, 1e300])
def test_long_edges_keep_a_bound_beyond_every_ratio(length):
    factor, shift = verify_table.lower_bound(length)
    value = math.log(factor) - shift * math.log(2)
    assert 43.0 < value <= min(length, 128.0) * (1 + 1e-12)


@pytest.mark.parametrize(
    ("mass", "length", "count"),
    [
        ([[7], [7]], 0.0, 0),
        ([[8], [7]], 0.0, 1),
        ([[7, 8], [8, 7]], 0.0, 2),
        ([[ROW_SUM], [ROW_SUM - 1]], 3e-19, 1),  # 2^-62 = 2.2e-19 is less, but the factor is rounded down to 1
        ([[ROW_SUM], [ROW_SUM - 1]], 1e-17, 0),
        ([[ROW_SUM], [1]], 42.9, 1),  # ln 2^62 = 42.975
        ([[ROW_SUM], [1]], 43.0, 0),
        ([[1], [ROW_SUM]], 500.0, 0),
    ],
)
def test_pairs_whose_count_is_known(mass, length, count):
    found = verify_table.breaches(mass, [ROW_SUM, ROW_SUM], [(0, 1, length)])
    assert len(found) == count
    assert all(mass[u][y] > mass[v][y] for u, v, y in found)


@pytest.mark.parametrize(
    ("n", "ends", "expected"),
    [
        (1, [], True),
        (3, [(1, 0), (2, 1)], True),
        (3, [(0, 1), (1, 2)], True),
        (3, [(2, 0), (2, 1)], True),
        (4, [(0, 1), (2, 3)], False),
        (2, [], False),
        (4, [(1, 2), (2, 3), (3, 1)], False),
    ],
)
def test_connectedness(n, ends, expected):
    assert verify_table.is_connected(n, [(u, v, 1.0) for u, v in ends]) is expected


def tight(rng):
    """Masses (n, m) whose only tight inequality is at (u, v, y), edges, and (u, v, y): every other one has slack.

    All rows are alike but for row u, where y is as large as its shortest edge allows and the largest report is less.
    """
    n, m = int(rng.integers(2, 6)), int(rng.integers(3, 7))
    tail = np.arange(n - 1)
    turned = rng.random(n - 1) < 0.5
    length = 10 ** rng.uniform(-6, 0.3, n - 1)
    edges = Edges(tail=np.where(turned, tail + 1, tail), head=np.where(turned, tail, tail + 1), length=length)
    base = [int(rng.integers(1 << 20, 1 << 50)) for _ in range(m - 1)]
    mass = np.array([[*base, ROW_SUM - sum(base)]] * n, np.uint64)
    u, y = int(rng.integers(n)), int(rng.integers(m - 1))
    touching = [e for e in range(n - 1) if u in (edges.tail[e], edges.head[e])]
    e = min(touching, key=lambda e: length[e])
    v = int(edges.tail[e] + edges.head[e] - u)
    factor, shift = lower_ratio(float(length[e]))
    rise = (factor * base[y] >> shift) - base[y]
    mass[u, y] += np.uint64(rise)
    mass[u, -1] -= np.uint64(rise)
    return mass, edges, (u, v, y)


@pytest.mark.obligation("exported-table")
def test_one_unit_beyond_a_tight_edge_is_found():
    rng = np.random.default_rng(1)
    for trial in range(TRIALS):
        mass, edges, (u, v, y) = tight(rng)
        assert found_by_all(mass, edges) == (0, 0, 0), trial
        mass[u, y] += np.uint64(1)
        mass[u, -1] -= np.uint64(1)
        assert [sum(row) for row in mass.tolist()] == [ROW_SUM] * len(mass)
        assert found_by_all(mass, edges) == (1, 1, 1), trial
        triples = list(zip(edges.tail.tolist(), edges.head.tolist(), edges.length.tolist(), strict=True))
        assert verify_table.breaches(mass.tolist(), [ROW_SUM] * len(mass), triples) == [(u, v, y)]


def test_one_unit_beyond_an_optimal_edge_is_found():
    mechanism, rng = exportable("plane"), np.random.default_rng(2)
    edges = Edges(**{part: mechanism[f"edge_{part}"].values for part in ("tail", "head", "length")})
    whole = mechanism["mass"].values.tolist()
    assert found_by_all(mechanism["mass"].values, edges) == (0, 0, 0)
    broken = 0
    for _ in range(100):
        e, y = int(rng.integers(len(edges.tail))), int(rng.integers(9))
        u, v = (int(x) for x in rng.permutation([edges.tail[e], edges.head[e]]))
        factor, shift = lower_ratio(float(edges.length[e]))
        rise = (factor * whole[v][y] >> shift) + 1 - whole[u][y]
        other = max((k for k in range(9) if k != y), key=lambda k: whole[u][k])
        if rise >= whole[u][other]:
            continue
        mass = mechanism["mass"].values.copy()
        mass[u, y], mass[u, other] = whole[u][y] + rise, whole[u][other] - rise
        fast, slow, verifier = found_by_all(mass, edges)
        assert fast == slow == verifier >= 1
        broken += 1
    assert broken > 30


@pytest.mark.parametrize("suffix", ["csv", "json"])
@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.obligation("exported-table")
def test_every_exported_table_is_proved(tmp_path, name, suffix):
    mechanism = exportable(name)
    table = verify_table.read(str(md.export(mechanism, tmp_path / f"t.{suffix}")))
    assert table.rows == mechanism["mass"].values.tolist()
    described = json.loads(mechanism.attrs["metric"])
    assert table.header["claim"]["metric"] == described | ({"multiplier": 1.0} if name == "graph" else {})
    assert table.header["claim"]["domain"] == json.loads(mechanism.attrs["domain"])
    named = (mechanism[f"edge_{name}"].values.tolist() for name in ("tail", "head", "length"))
    assert table.edges == list(zip(*named, strict=True))
    assert verify_table.faults_of(table) == []


@pytest.mark.parametrize("make", [factored_export, lambda: columned("line, zero-one")], ids=["places", "columns"])
def test_rows_with_sums_of_their_own_are_proved(tmp_path, make):
    table = verify_table.read(str(md.export(make(), tmp_path / "t.csv")))
    assert len(set(table.sums)) > 1
    assert verify_table.faults_of(table) == []
    u, v, length = table.edges[0]
    sums = list(table.sums)
    sums[u] *= 3
    assert {(v, u)} <= {(a, b) for a, b, _ in verify_table.breaches(table.rows, sums, [(u, v, length)])}


def broken_edge(mass):
    mass[0, 0], mass[0, 1] = mass[0, 0] + mass[0, 1] - 1, 1


def short_row(mass):
    mass[1, 1] -= 1


def long_row(mass):
    mass[2, 2] += 1


def zero(mass):
    mass[:, 0] += mass[:, 1]
    mass[:, 1] = 0


@pytest.mark.parametrize("suffix", ["csv", "json"])
@pytest.mark.parametrize(
    ("alter", "said"),
    [
        (broken_edge, "inequalities are broken, first P(0|0) <= e^d P(0|1)"),
        (short_row, f"secret 1: the masses sum to {ROW_SUM - 1}"),
        (long_row, f"secret 2: the masses sum to {ROW_SUM + 1}"),
        (zero, "secret 0: a mass is below 1"),
    ],
)
def test_wrong_masses_are_refused(tmp_path, capsys, alter, said, suffix):
    mass = exportable("line")["mass"].values.copy()
    alter(mass)
    path = write_unverified(with_mass(exportable("line"), mass), tmp_path / f"t.{suffix}")
    assert verify_table.main([str(path)]) == 1
    printed = capsys.readouterr().out
    assert said in printed
    assert "proved:" not in printed


IN_CSV = [
    ("# problem", "# program", "duplicate name"),
    ("# problem", "# edge", "missing field: problem"),
    ("# reports: 5", "# reports: 4", "one for each secret and report"),
    ("# secrets: 5", "# secrets: 1000000000000000", "one for each secret and report"),
    ("# secrets: 5", "# secrets: -5", "one for each secret and report"),
    ('"2^62"', '"2^62', "not a mechanism table"),
    ("# problem: ", "# problems: ", "missing field: problem"),
    ('"denominator": "2^62"', '"denominator": "row_sum"', "the denominator of the claim is not"),
    ("secret,", "place,", "columns"),
    ("secret,secret_x,", "secret,secret_y,", "columns"),
    (",mass", ",mass,row_sum", "not a mechanism table"),
    (",mass", ",row_sum,mass", "columns"),
    ("\n0,0.5,1,", "\n0,0.5,01,", "rows out of order"),
    ("\n1,1.5,1,", "\n1,1.5,2,", "rows out of order"),
    ("\n1,1.5,1,1.5", "\n1,1.5,1,1.25", "coordinates that change"),
    ("\n1,1.5,1,", "\n1,1.25,1,", "coordinates that change"),
    ("\n1,1.5,1,1.5,0.", "\n1,1.5,1,1.5,1.", "a probability other than mass / sum"),
    ("\n1,1.5,1,1.5,0.", "\n1,1.5,1,1.5,0.,0", "plain integer"),
    ("\n", "\r\n", "control characters"),
]
IN_JSON = [
    ('"problem"', '"program"', "duplicate name"),
    ('"problem"', '"problems"', "missing field: problem"),
    ('"denominator": "2^62"', '"denominator": "row_sum"', "the denominator of the claim is not"),
    ('"reports": 5', '"reports": 4', "as many coordinates"),
    ('"secrets": 5', '"secrets": 6', "as many coordinates"),
    ("mechdesign/table/1", "mechdesign/table/2", "unknown format"),
    ('"mass": ["', '"mass": ["+', "plain integer"),
    ('"mass": ["', '"mass": ["1 ', "masses, 4 edges and as many coordinates as secrets"),
    ('"mass": ["', '"mass": [7, "', "not a mechanism table"),
    ('"mass": [', '"mass": "", "more": [', "edges and coordinates are not lists"),
    ('"mass"', '"more"', "not a mechanism table"),
    ('"edge": [', '"edge": {}, "more": [', "edges and coordinates are not lists"),
    ('"secret_points": [', '"secret_points": "12345", "more": [', "edges and coordinates are not lists"),
    ('"secret_points": [[0.5]', '"secret_points": ["1"', "a place must have 1 to 3 coordinates"),
    ('{"format"', '[{"format"', "not a mechanism table"),
    ("\n", "\r\n", "control characters"),
    ("\n", "\t\n", "control characters"),
]
ALTERED = [("csv", *row) for row in IN_CSV] + [("json", *row) for row in IN_JSON]


@pytest.fixture(scope="module")
def genuine(tmp_path_factory):
    """The texts of an export of the line, by suffix."""
    folder = tmp_path_factory.mktemp("genuine")
    return {suffix: joined_text(md.export(exportable("line"), folder / f"t.{suffix}")) for suffix in ("csv", "json")}


@pytest.mark.parametrize(("suffix", "old", "new", "said"), ALTERED)
def test_files_that_contradict_themselves_are_refused(genuine, tmp_path, capsys, suffix, old, new, said):
    path, text = tmp_path / f"t.{suffix}", genuine[suffix]
    assert old in text
    split_text(text.replace(old, new, 1), path)
    assert verify_table.main([str(path)]) == 2
    assert said in capsys.readouterr().out


def test_some_rows_prove_nothing(tmp_path, capsys):
    path = md.export(exportable("line"), tmp_path / "t.csv", rows=range(2, 5))
    assert verify_table.main([str(path)]) == 2
    assert "incomplete: " in capsys.readouterr().out


@pytest.mark.parametrize("suffix", ["csv", "json"])
@pytest.mark.obligation("exported-table")
def test_every_flipped_bit_is_refused(tmp_path, suffix):
    path = md.export(exportable("plane"), tmp_path / f"t.{suffix}")
    files = [path] if suffix == "json" else [path, path.with_name(f"{path.name}-metadata.json")]
    for seed in range(100):
        changed = files[seed % len(files)]
        before = changed.read_bytes()
        changed.write_bytes(flip_bit(changed, seed))
        with pytest.raises(verify_table.Refused):
            verify_table.read(str(path))
        changed.write_bytes(before)
    assert verify_table.faults_of(verify_table.read(path)) == []


@pytest.mark.parametrize("suffix", ["csv", "json"])
@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_a_file_cut_short_is_refused(tmp_path, suffix, share):
    path = md.export(exportable("plane"), tmp_path / f"t.{suffix}")
    data = path.read_bytes()
    path.write_bytes(data[: int(share * len(data))])
    with pytest.raises(verify_table.Refused):
        verify_table.read(str(path))


@pytest.mark.parametrize("arguments", [[], ["absent.csv"], ["a", "b"], ["x.parquet"], ["n" * 300 + ".csv"]])
def test_non_table_has_its_own_exit_code(arguments, capsys):
    assert verify_table.main(arguments) == 2
    assert capsys.readouterr().out


def test_an_altered_table_is_refused_by_name(tmp_path, capsys):
    path = md.export(exportable("plane"), tmp_path / "t.csv")
    path.write_bytes(path.read_bytes().replace(b"1", b"2", 1))
    assert verify_table.main([str(path)]) == 1
    assert capsys.readouterr().out.startswith(f"refused:  {path}: the checksum of the table differs")


@pytest.mark.parametrize("suffix", ["csv", "json"])
def test_the_file_alone_proves_a_table(tmp_path, suffix):
    path = md.export(exportable("plane"), tmp_path / f"t.{suffix}", with_verifier=True)
    isolated = [sys.executable, "-I", "-S", "verify_table.py", path.name]  # no installed package can be imported
    done = subprocess.run(isolated, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "all 9 secrets (cells of a 3 x 3 grid), where d is the least integral of the level eps " in done.stdout
    assert "(1.0 to 1.0 nats per cell) along the edges of the 8-neighbour graph; checked on 20 edges." in done.stdout
    assert "k reports cost k times as much." in done.stdout
    path.write_bytes(path.read_bytes().replace(b"1", b"2", 1))
    done = subprocess.run(isolated, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.parametrize("suffix", few_by_default(["csv", "json"], "json"))
@pytest.mark.parametrize("case", CASES)
def test_every_kind_of_claim_is_proved(tmp_path, case, suffix):
    path = md.export(baselines.exponential(CASES[case]()), tmp_path / f"t.{suffix}")
    assert verify_table.faults_of(verify_table.read(path)) == []


@pytest.mark.parametrize("case", CASES)
def test_a_claim_is_about_its_lengths_whatever_the_multiplier(case):
    """Lengths are held to the exact product of level, multiplier and distance."""
    problem, rng = CASES[case](), np.random.default_rng(7)
    domain, n = problem.domain, problem.domain.size
    near = [1 + 4.9e-12, 1 - 4.9e-13, 2 + 4.9e-12, 0.1, 1e-140, 1e140, 9.99999999999949]
    for factor in [*near, *(10 ** rng.uniform(-6, 3, 2)).tolist()]:
        metric = factor * problem.metric
        edges = metric.edges(domain)
        claim = {"metric": metric.describe(), "domain": domain.describe(), "positions": None, "denominator": "2^62"}
        told = {"claim": json.loads(json.dumps(claim)), "unit": domain.unit}
        listed = list(zip(edges.tail.tolist(), edges.head.tolist(), edges.length.tolist(), strict=True))
        table = verify_table.TableFile(told, [[1]] * n, [1] * n, listed, list(map(tuple, domain.points.tolist())))
        assert verify_table.check_metric(table, told["claim"]) == [], factor
        longer = [(u, v, length * (1 + 2e-8)) for u, v, length in listed]
        faults = verify_table.check_metric(table._replace(edges=longer), told["claim"])
        bounded = problem.metric.kind != "graph" and metric.smallest_level != 0
        varying = problem.metric.kind == "eikonal" and problem.metric.level.largest > problem.metric.level.smallest
        assert varying or len(faults) == bounded, factor


@pytest.mark.parametrize("stencil", [4, 8, 16, 32, 64, 6, 18, 26])
def test_every_stencil_is_known(tmp_path, stencil):
    shapes = [(7, 7), (12,)] if stencil in (4, 8, 16, 32, 64) else [(3, 3, 2)]
    for shape in shapes:
        metric = md.Eikonal(level=md.PrivacyLevel.constant(0.3, "cell"), stencil=stencil)
        domain = grid(shape)
        problem = md.DesignProblem(domain, metric, md.priors.uniform(domain), md.losses.SquaredDistance())
        table = md.export(md.baselines.exponential(problem), tmp_path / f"{len(shape)}.csv")
        assert verify_table.faults_of(verify_table.read(table)) == []
