"""Audits: the true epsilon of tables of others, by two routes, and the repair of a table that breaks its claim."""

from __future__ import annotations

import json
import math
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from fixtures.solver_tables import raw_optimum
from fixtures.tolerances import UP_TO_ROUNDING
from hypothesis import given, settings
from hypothesis import strategies as some
from reference.exact import DOUBLES, lower_ratio

from mechdesign import (
    DesignProblem,
    Discrete,
    Domain,
    Euclidean,
    audit,
    baselines,
    export,
    load,
    load_problem,
    priors,
    probabilities,
    save,
    verify,
)
from mechdesign.errors import DesignError, FileFormatError, InputError, SizeError
from mechdesign.extend import Edges, Loss, Metric
from mechdesign.losses import Distance, SquaredDistance, ZeroOne
from mechdesign.mechanism.certificate import breaches, max_log_ratio_of_doubles
from mechdesign.mechanism.figures import true_scale
from mechdesign.read import places as read_places
from mechdesign.read import table as read_table

TABLE = np.array([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.125, 0.375, 0.5]])
TAILS, HEADS = np.triu_indices(4, 1)
RATIO = 1e-12  # logarithms of one table in two orders


def paper_problem(cells: int = 30) -> DesignProblem:
    """150 m cells at eps = 0.00404249 per m, as in Alvim et al. 2018."""
    domain = Domain.grid((cells, cells), cell=150.0, unit="m")
    return on(domain, Euclidean(epsilon=0.00404249, unit="m"), Distance())


def on(domain: Domain, metric: Metric, loss: Loss) -> DesignProblem:
    """A problem of evenly likely secrets."""
    return DesignProblem(domain=domain, metric=metric, prior=priors.uniform(domain), loss=loss)


def answers(secrets: int, epsilon: float = 1.0) -> DesignProblem:
    """Answers that all are as far from each other."""
    return on(Domain.nodes(secrets), Discrete(epsilon=epsilon), ZeroOne())


@given(
    exponents=some.lists(some.integers(-1074, -1), min_size=12, max_size=12),
    zeros=some.lists(some.integers(0, 11), max_size=3),
    scale=some.integers(-20, 10),
    seed=some.integers(0, 99),
)
@settings(derandomize=True, deadline=None, max_examples=60)
def test_breaches_against_fractions(exponents, zeros, scale, seed):
    random = np.random.default_rng(seed)
    table = random.random(12) * 2.0 ** np.array(exponents if seed % 2 else [0] * 12)
    table[zeros] = 0
    table = table.reshape(4, 3)
    lengths = random.random(6) * 2.0**scale + 2.0**-30
    expected = 0
    for u, v, length in zip(TAILS, HEADS, lengths, strict=True):
        r, s = lower_ratio(float(length), DOUBLES)
        most = Fraction(r) / Fraction(2) ** s
        for p, q in zip(map(Fraction, table[u].tolist()), map(Fraction, table[v].tolist()), strict=True):
            expected += (p > most * q) + (q > most * p)
    assert breaches(table, Edges(tail=TAILS, head=HEADS, length=lengths)) == expected


def test_one_bit_of_a_double_is_a_breach():
    r, s = lower_ratio(0.5)
    low = math.floor(Fraction(r, 2**s) * 2**52)
    edge = Edges(tail=np.array([0]), head=np.array([1]), length=np.array([0.5]))
    for extra, expected in ((0, 0), (1, 1)):
        table = np.array([[(low + extra) * 2.0**-53], [0.5]])
        assert breaches(table, edge) == expected


@pytest.mark.parametrize("name", ["line", "euclidean", "discrete", "philadelphia"])
def test_the_true_multiple_holds_and_no_less_does(name):
    problem = load_problem(name, cells=5) if name != "discrete" else load_problem(name)
    table = np.random.default_rng(1).dirichlet(np.ones(7), problem.domain.size)
    at = max_log_ratio_of_doubles(table, problem.edges)
    multiple = true_scale(table, problem.metric, problem.domain, at.value)
    assert breaches(table, (multiple * problem.metric).edges(problem.domain)) == 0
    assert at.value < multiple < at.value * UP_TO_ROUNDING
    assert breaches(table, ((at.value * (1 - 1e-9)) * problem.metric).edges(problem.domain)) > 0
    ratio = math.log(table[at.secret, at.report] / table[at.other, at.report])
    assert at.value == pytest.approx(ratio / at.distance, rel=RATIO)
    logs, away = np.log(table), problem.distances
    pairs = np.triu_indices(len(table), 1)
    largest = (abs(logs[pairs[0]] - logs[pairs[1]]).max(axis=1) / away[pairs]).max()
    assert multiple == pytest.approx(largest, rel=1e-9)


@pytest.mark.study
def test_normalised_geometric_is_half_again_its_claim():
    problem = paper_problem()
    table = probabilities(baselines.geometric(problem, 0.00404249, border="normalised")).values
    result = audit(table, problem)
    assert round(result.ratio, 4) == 1.5227
    assert (result.verdict, result.infinite, result.divided) == ("broken", False, None)
    assert result.effective_epsilon == pytest.approx(0.00404249 * result.ratio)
    assert result.loss == pytest.approx(float((problem.weighted_loss * table).sum()))


def test_planar_laplace_of_libqif():
    qif = pytest.importorskip("qif", reason="the Python package of libqif is not installed")
    table = np.asarray(qif.mechanism.geo_ind.planar_laplace_grid(30, 30, 150.0, 0.00404249))
    problem = paper_problem()
    with pytest.raises(InputError, match=r"row \d+ does not sum to 1 .*1\.0000178"):
        audit(table, problem)
    result = audit(table, problem, normalise=True)
    assert round(result.ratio, 3) == 2.167
    assert result.divided == "rows"


@pytest.mark.parametrize(("border", "verdict"), [("clamped", "holds"), ("normalised", "broken")])
def test_verdict_agrees_with_the_integer_certificate(border, verdict):
    problem = load_problem("euclidean", cells=6)
    mechanism = baselines.geometric(problem, border=border)
    result = audit(probabilities(mechanism).values, problem)
    assert result.ratio == pytest.approx(mechanism.attrs["ratio"], rel=1e-9)
    assert result.verdict == verdict or (verdict == "holds" and result.verdict == "holds up to rounding")


def test_simplex_solutions_are_repaired_at_no_cost():
    problem = load_problem("philadelphia", cells=5, floor=0.2)
    table = raw_optimum(problem)
    result = audit(table, problem)
    assert result.infinite
    assert result.ratio is result.effective_epsilon is result.worst["log_ratio"] is None
    assert result.zeros["mixed_columns"] > 0
    assert result.worst["other_probability"] == 0 < result.worst["probability"]
    fixed = baselines.repair_table(table, problem)
    assert verify(fixed).certified
    assert fixed.attrs["expected_loss"] == pytest.approx(result.loss, rel=1e-7)


def test_metrics_without_one_level_have_no_effective_epsilon():
    problem = load_problem("philadelphia", cells=4)
    result = audit(probabilities(baselines.exponential(problem)).values, problem)
    assert result.verdict == "holds"
    assert result.effective_epsilon is result.claimed_epsilon is result.epsilon_unit is None
    assert result.prior == "given"


def test_audit_shows_its_verdict():
    problem = answers(3)
    result = audit(TABLE, problem)
    assert f"verdict  {result.verdict} ({result.breaches} breaches)" in repr(result)
    assert result.prior == "uniform"
    with pytest.raises(InputError, match="the problem has 3 reports"):
        baselines.repair_table(TABLE[:, :2] / TABLE[:, :2].sum(axis=1, keepdims=True), problem)
    for table in ([["a", "b"]], [[0.5, 0.5], [1.0]]):
        with pytest.raises(InputError, match="must be an array of numbers"):
            audit(table, problem)


def test_no_scale_holds_for_an_infinite_ratio():
    problem = answers(3)
    with pytest.raises(DesignError, match="no scale"):
        true_scale(TABLE, problem.metric, problem.domain, math.inf)


def test_zeros_are_counted():
    table = np.array([[0.5, 0.25, 0.25, 0.0], [0.25, 0.25, 0.5, 0.0], [1.0, 0.0, 0.0, 0.0]])
    result = audit(table, answers(3, 0.5))
    assert result.zeros == {"entries": 5, "empty_columns": 1, "mixed_columns": 2}
    assert result.infinite
    assert result.finite_epsilon == pytest.approx(math.log(4) / 0.5)
    assert result.loss is None
    assert "4 reports" in result.notes[0]


def test_counts_are_divided_and_rounding_is_not_refused():
    problem = answers(3)
    counts = audit(8 * TABLE, problem)
    assert (counts.divided, counts.ratio) == ("counts", audit(TABLE, problem).ratio)
    off = audit(TABLE * (1 + 1e-8), problem)
    assert off.row_sums["largest_deviation"] == pytest.approx(1e-8)
    assert off.divided is None


def test_every_row_is_divided_by_its_own_sum():
    """3 of 4 draws beside 1 of 2: log 2 apart, and so are shares of 0.996 and of 1.006. A row of nothing has no sum."""
    problem = answers(2)
    for table, normalise, divided in (
        ([[3, 1], [1, 1]], False, "counts"),
        ([[0.747, 0.249], [0.503, 0.503]], True, "rows"),
    ):
        result = audit(np.array(table, float), problem, normalise=normalise)
        assert (result.divided, result.finite_epsilon) == (divided, pytest.approx(math.log(2)))
    for nothing in ([[3, 1], [0, 0]], [[0.6, 0.4], [0.0, 0.0]]):
        with pytest.raises(InputError, match=r"row 1 does not sum to 1 \(got 0\)"):
            audit(np.array(nothing, float), problem, normalise=True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t * (1 + 2e-6), r"row \d does not sum to 1 \(got 1\.000002\)"),
        (lambda t: np.where(t == 0.375, -0.375, t), r"row 2, column 1 is not a probability \(got .*-0\.375"),
        (lambda t: np.where(t == 0.375, math.nan, t), r"row 2, column 1 is not a probability \(got .*nan"),
        (lambda t: np.where(t == 0.375, math.inf, t), r"row 2, column 1 is not a probability"),
        (lambda t: t[:2], r"must have 3 rows, one for each secret of the metric \(got shape \(2, 3\)"),
        (lambda t: np.vstack([t[:2], np.zeros(3)]), r"row 2 does not sum to 1 \(got 0\)"),
        (lambda t: t[0], r"must have 3 rows"),
    ],
)
def test_invalid_table_names_row_and_value(change, message):
    domain = Domain.grid(3, cell=1.0, unit="km")
    metric = Euclidean(epsilon=1.0, unit="km")
    problem = DesignProblem(domain=domain, metric=metric, prior=priors.uniform(domain), loss=SquaredDistance())
    for use in (audit, baselines.repair_table):
        with pytest.raises(InputError, match=message):
            use(change(TABLE), problem)


def rows(separator, head=None, names=None):
    lines = [separator.join(map(repr, row)) for row in TABLE.tolist()]
    if names is not None:
        lines = [f"{name}{separator}{line}" for name, line in zip(names, lines, strict=True)]
    return "\n".join(([head] if head is not None else []) + lines) + "\n"


PAIRS = [(u, y, TABLE.tolist()[u][y]) for u in range(3) for y in range(3)]
TEXTS = {
    "plain.csv": rows(","),
    "comments.csv": "# made by hand\n\n" + rows(","),
    "header.csv": rows(",", "a,b,c"),
    "numbers.csv": rows(",", "0,1,2"),
    "pandas.csv": rows(",", ",0,1,2", names="012"),
    "named.csv": rows(",", "secret,a,b,c", names=["home", "work", "gym"]),
    "labels.csv": rows(",", names=["home", "work", "gym"]),
    "quoted.csv": rows(",", '"","a, b","c","d"', names=['"x, y"', "z", "w"]),
    "index.csv": rows(",", names="012"),
    "semicolon.csv": rows(";"),
    "tab.tsv": rows("\t", "a\tb\tc"),
    "savetxt.txt": rows(" "),
    "mark.csv": "\ufeff" + rows(","),
    "long.csv": "secret,report,probability\n" + "".join(f"{u},{y},{p!r}\n" for u, y, p in map(tuple, PAIRS)),
    "turned.csv": "probability;report;x;secret\n" + "".join(f"{p!r};{y};7;{u}\n" for u, y, p in PAIRS[::-1]),
    "words.csv": "secret,report,probability\n"
    + "".join(f"{'abc'[u]},{'xyz'[y]},{p!r}\n" for u, y, p in PAIRS),
}  # fmt: skip


@pytest.mark.parametrize("name", TEXTS)
def test_texts(name, tmp_path):
    path = tmp_path / name
    path.write_text(TEXTS[name], encoding="utf-8")
    assert np.array_equal(read_table(path), TABLE)


def test_missing_lines_of_long_form_are_zero(tmp_path):
    path = tmp_path / "long.csv"
    path.write_text("secret,report,count\n0,0,3\n0,1,1\n1,2,4\n", encoding="utf-8")
    assert read_table(path).tolist() == [[3, 1, 0], [0, 0, 4]]


def test_numpy_files(tmp_path):
    np.save(tmp_path / "t.npy", TABLE)
    np.save(tmp_path / "f.npy", np.asfortranarray(TABLE))
    for name in ("t.npy", "f.npy"):
        assert np.array_equal(read_table(tmp_path / name), TABLE)


def test_parquet(tmp_path):
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    parquet.write_table(pyarrow.table({f"r{y}": TABLE[:, y] for y in range(3)}), tmp_path / "wide.parquet")
    columns = {name: [pair[k] for pair in PAIRS] for k, name in enumerate(("secret", "report", "probability"))}
    parquet.write_table(pyarrow.table(columns), tmp_path / "long.parquet")
    for name in ("wide", "long"):
        assert np.array_equal(read_table(tmp_path / f"{name}.parquet"), TABLE)


def test_parquet_without_pyarrow(tmp_path, monkeypatch):
    (tmp_path / "t.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InputError, match="needs pyarrow"):
        read_table(tmp_path / "t.parquet")


def test_the_export_of_a_mechanism_is_a_table(tmp_path):
    problem = load_problem("line", cells=5)
    mechanism = baselines.geometric(problem)
    result = audit(export(mechanism, tmp_path / "line.csv"), problem)
    assert result.divided == "counts"
    assert result.ratio == pytest.approx(mechanism.attrs["ratio"], rel=1e-9)


BAD_FILES = {
    "two decimal marks": ("t.csv", "0,5;0.5\n0,25;0.75\n", "has decimal points and decimal commas"),
    "a word": ("t.csv", "0.5,0.5\n0.5,half\n", "row 1, column 1 is not a number .*'half'"),
    "uneven rows": ("t.csv", "0.5,0.5\n0.5\n", "row 1, column 1 is not a number"),
    "empty": ("t.csv", "\n# nothing\n", "is empty"),
    "header alone": ("t.csv", "a,b,c\n", "no rows"),
    "not UTF-8": ("t.csv", b"\xff\xff0\x00", "can't decode"),
    "long, pair twice": ("t.csv", "secret,report,probability\n0,0,1\n0,0,1\n", "listed twice .*secret 0, report 0"),
    "long, a gap": ("t.csv", "secret,report,probability\n0,0,1\n2,0,1\n", "without a gap"),
    "long, negative label": ("t.csv", "secret,report,probability\n-1,0,1\n", "numbered from 0"),
    "long, no value": ("t.csv", "secret,report,x\n0,0,1\n", "long form has the columns"),
    "long, a word": (
        "t.csv",
        "secret,report,count\n0,0,1\n1,0,many\n",
        "count must be a finite number .*many in line 3",
    ),
    "traces of PrivKit": ("t.csv", "lat,lon,obf_lat,obf_lon\n1,2,3,4\n", "samples of a mechanism"),
    "NumPy cut short": ("t.npy", b"\x93NUMPY\x01\x00", "cannot be read"),
    "MATLAB": ("t.mat", b"nothing", "is not a table"),
    "mechanism": ("t.nc", b"", "mechdesign verify"),
    "missing": (None, None, "no such file"),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_bad_files(case, tmp_path):
    name, content, message = BAD_FILES[case]
    path = tmp_path / (name or "absent.csv")
    if content is not None:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(InputError, match=message) as caught:
        read_table(path)
    assert caught.value.value is not None


@pytest.mark.parametrize("array", [np.ones(3), np.ones((2, 2, 2)), np.ones((2, 2)) * 1j, np.array([["a"]])])
def test_arrays_other_than_matrices_are_refused(array, tmp_path):
    np.save(tmp_path / "t.npy", array)
    with pytest.raises(FileFormatError, match="matrix of real numbers"):
        read_table(tmp_path / "t.npy")


def test_objects_are_never_unpickled(tmp_path):
    np.save(tmp_path / "t.npy", np.array([[{}]]), allow_pickle=True)
    with pytest.raises(FileFormatError, match=r"cannot be read .*Python objects"):
        read_table(tmp_path / "t.npy")


def test_a_far_label_is_refused_before_it_is_allocated(tmp_path, monkeypatch):
    monkeypatch.setattr("psutil.virtual_memory", lambda: type("Memory", (), {"available": 1e4})())
    (tmp_path / "t.csv").write_text("secret,report,mass\n" + "".join(f"{k},{k},1\n" for k in range(100)))
    with pytest.raises(SizeError):
        read_table(tmp_path / "t.csv")


@pytest.fixture
def table(tmp_path, monkeypatch):
    """A folder with the table t.csv and its places."""
    monkeypatch.chdir(tmp_path)
    np.savetxt("t.csv", TABLE)
    Path("places.csv").write_text("x,y\n0,0\n1,0\n0,2\n")
    return "t.csv"


def test_command_line(run, run_json, table):
    words = ["audit", table, "--metric", "euclidean", "--epsilon", "0.3", "--unit", "km", "--places", "places.csv"]
    code, result = run_json(*words, "-o", "fixed.nc")
    assert code == 0
    assert (result["verdict"], result["epsilon_unit"], result["secrets"]) == ("broken", "nats per km", 3)
    assert result["repaired"]["loss"] > result["loss"]
    assert verify("fixed.nc").certified
    assert run_json("audit", table, "--metric", "fixed.nc")[1] == {**result, "repaired": None}
    assert load("fixed.nc").attrs["program"] == "repaired"
    code, out, _ = run(*words)
    assert code == 1
    assert "broken" in out
    assert run(*words, "--exit-zero")[0] == 0


@pytest.mark.parametrize(
    ("metric", "words", "epsilon"),
    [
        ("euclidean", "--within 2 --factor 3 --unit km --places places.csv", np.log(3) / 2),
        ("euclidean", "--epsilon 0.25 --unit km --places places.csv", 0.25),
        ("discrete", "--factor 3", np.log(3)),
    ],
)
def test_a_level_in_every_form(run, table, metric, words, epsilon):
    code, out, _ = run("audit", table, "--metric", metric, *words.split(), "--json")
    asked = answers(3, float(epsilon))
    if metric == "euclidean":
        domain = Domain.points_at(read_places("places.csv"), unit="km")
        asked = on(domain, Euclidean(epsilon=float(epsilon), unit="km"), SquaredDistance())
    result = audit(TABLE, asked)
    expected = {**result.as_dict(), "repaired": None}
    assert (code, json.loads(out)) == (0 if result else 1, expected)


def test_lengths_are_metres_with_distance_and_factor(run_json, table):
    words = ["audit", table, "--metric", "euclidean", "--places", "places.csv"]
    told = run_json(*words, "--within", 2, "--factor", 3)[1]
    assert told == run_json(*words, "--within", 2, "--factor", 3, "--unit", "m")[1]
    assert told["epsilon_unit"] == "nats per m"
    assert run_json(*words, "--epsilon", 1)[1]["error"]["field"] == "unit"


@pytest.mark.parametrize(
    ("words", "field"),
    [
        ("euclidean --factor 3 --unit km --places places.csv", "within"),
        ("euclidean --within 2 --unit km --places places.csv", "factor"),
        ("euclidean --within 2 --factor 3 --epsilon 1 --unit km --places places.csv", "factor"),
        ("euclidean --within x --factor 3 --unit km --places places.csv", "within"),
        ("discrete --within 2 --factor 3", "--within"),
        ("discrete --factor 1", "factor"),
    ],
)
def test_invalid_levels_are_refused(run, table, words, field):
    code, out, _ = run("audit", table, "--metric", *words.split(), "--json")
    assert (code, json.loads(out)["error"]["field"]) == (2, field)


@pytest.mark.parametrize("words", ["--metric line --cells 3 --epsilon 1.5", "--metric discrete --epsilon=0.8"])
def test_metrics_of_the_command_line(run_json, table, words):
    code, result = run_json("audit", table, *words.split(), "--exit-zero")
    assert code == 0
    assert result["ratio"] > 0


def test_a_graph_in_a_mechanism_file_is_its_metric(run_json, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    from fixtures.problems import CASES

    problem = CASES["graph, table loss"]()
    mechanism = baselines.exponential(problem)
    save(mechanism, "ring.nc")
    np.save("ring.npy", probabilities(mechanism).values)
    result = run_json("audit", "ring.npy", "--metric", "ring.nc")[1]
    assert result["verdict"] in {"holds", "holds up to rounding"}
    assert result["loss"] == pytest.approx(mechanism.attrs["expected_loss"])


def test_a_constant_table_reveals_nothing():
    result = audit(np.full((4, 3), 1 / 3), answers(4), normalise=True)
    assert (result.ratio, result.verdict, result.breaches) == (0, "holds", 0)


def test_verdicts_are_their_truth():
    """`if audit(...)` and `if verify(...)` ask for the verdict."""
    asked = answers(3, 0.8)
    table = np.full((3, 3), 1 / 3)
    assert audit(table, asked)
    assert not audit(np.eye(3), asked)
    mechanism = baselines.repair_table(table, asked)
    assert verify(mechanism)
    mass = mechanism["mass"].values.copy()
    mass[0, 0] += np.uint64(1)
    assert not verify(mechanism.assign(mass=(("secret", "report"), mass, mechanism["mass"].attrs)))
