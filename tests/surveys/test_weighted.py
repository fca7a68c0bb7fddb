"""Weighted shares: reduction to the unweighted case, formulas by brute force, coverage by simulated collections."""

from __future__ import annotations

import json

import numpy as np
import pytest
from fixtures.report_collections import AREAS, block, channel, truths

import mechdesign as md
from mechdesign.errors import InputError
from mechdesign.programs.matched import FAMILIES
from mechdesign.surveys.channel import Channel
from mechdesign.surveys.intervals import quantile
from mechdesign.surveys.linear_estimator import linear_weights
from mechdesign.surveys.weighted import weighted_shares
from mechdesign.surveys.weighted_dataset import sum_of
from mechdesign.surveys.weighted_sums import NO_ANSWER, Sums, among_all, weighted_intervals, with_class

Z = quantile(0.95)
MECHANISM = "Laplacian, 0.01 per m"
AREA = AREAS["centre"]


def small():
    """A mechanism of three secrets, two areas, and reports of a thousand persons."""
    mechanism = md.baselines.exponential(md.load_problem("line", cells=3, epsilon=2.0))
    areas = md.geo.Partition(names=("low", "high"), label=np.array([0, 0, 1]))
    return mechanism, areas, np.random.default_rng(4).choice(3, 1000, p=[0.5, 0.3, 0.2])


def test_equal_weights_are_the_unweighted_estimate() -> None:
    mechanism, areas, reports = small()
    weighted = weighted_shares(mechanism, reports, areas, weights=np.full(1000, 7.0))
    plain = md.surveys.estimate_shares([mechanism], [np.bincount(reports, minlength=3)], areas)
    for name in ("estimate", "share", "effective"):
        assert np.allclose(weighted[name][0], plain[name], rtol=1e-2 if name == "effective" else 1e-9)
    # Sample variances divide by n - 1 here, by n there.
    assert np.allclose(weighted["standard_error"][0], plain["standard_error"] * np.sqrt(1000 / 999))
    assert weighted["design_effect"].item() == pytest.approx(1)


def test_formulas_agree_with_sums_over_persons() -> None:
    mechanism, areas, reports = small()
    w = np.random.default_rng(5).uniform(0.5, 3, 1000)
    found = weighted_shares(mechanism, reports, areas, weights=w, population=4000)
    a = np.linalg.inv(md.probabilities(mechanism).values) @ areas.indicator  # a square table: P a = g has one solution
    each = a[reports]
    estimate = (w[:, None] * each).sum(axis=0) / w.sum()
    variance = (w[:, None] ** 2 * (each - estimate) ** 2).sum(axis=0) / w.sum() ** 2 * 1000 / 999
    share = np.clip(estimate, 0, 1)
    assert np.allclose(found["estimate"][0], estimate)
    assert np.allclose(found["standard_error"][0], np.sqrt(variance - share * (1 - share) / 4000))
    assert found["design_effect"].item() == pytest.approx(1000 * (w**2).sum() / w.sum() ** 2)
    assert found["effective_sample"].item() == pytest.approx(w.sum() ** 2 / (w**2).sum())


def test_domains_are_estimates_of_their_persons() -> None:
    mechanism, areas, reports = small()
    who = np.where(np.arange(1000) % 3 == 0, "young", "old")
    found = weighted_shares(mechanism, reports, areas, by=who, simultaneous=True)
    first = json.loads(found.attrs["domains"]).index("young")
    alone = weighted_shares(mechanism, reports[who == "old"], areas)
    assert np.allclose(found["estimate"][1 - first], alone["estimate"][0])
    assert found.attrs["z"] == pytest.approx(quantile(0.95, intervals=4))
    # With two domains, each differs from the other.
    assert np.allclose(found["difference"][0], -found["difference"][1])
    expected = found["estimate"][first] - found["estimate"][1 - first]
    assert np.allclose(found["difference"][first], expected)
    half = found.attrs["z"] * np.hypot(*found["standard_error"].values)
    width = found["difference_high"] - found["difference_low"]
    assert np.allclose(width[0], 2 * half, atol=1e-9)


def test_totals_are_persons_of_a_domain_in_an_area() -> None:
    """By the persons themselves: everybody counts in the mean, and a person of another domain has the value 0."""
    mechanism, areas, reports = small()
    w, who = np.random.default_rng(5).uniform(0.5, 3, 1000), np.where(np.arange(1000) % 3 == 0, "young", "old")
    found = weighted_shares(mechanism, reports, areas, weights=w, by=who.tolist(), population=9000)
    a = np.linalg.inv(md.probabilities(mechanism).values) @ areas.indicator
    for d, name in enumerate(json.loads(found.attrs["domains"])):
        each = a[reports] * (who == name)[:, None]
        mean = (w[:, None] * each).sum(axis=0) / w.sum()
        variance = (w[:, None] ** 2 * (each - mean) ** 2).sum(axis=0) / w.sum() ** 2 * 1000 / 999
        half = Z * np.sqrt(variance - mean * (1 - mean) / 9000)
        assert np.allclose(found["total"][d], 9000 * mean)
        assert np.allclose(found["total_low"][d], 9000 * (mean - half), atol=1e-3)
        assert np.allclose(found["total_high"][d], 9000 * (mean + half), atol=1e-3)
    assert float(found["total"].sum()) == pytest.approx(9000)
    # The reports that pad the effective number are of persons of both kinds, in the shares of their weights.
    own, everybody = (Sums.of(reports[one], w[one], 3) for one in (who == "young", who != ""))
    held = linear_weights(Channel.of(md.probabilities(mechanism).values), areas.indicator, np.full(3, 1 / 3))
    law = among_all(own, everybody, held)[1].law
    assert law.sum() == pytest.approx(1)
    assert law[-1] == pytest.approx(w[who == "old"].sum() / w.sum())
    alone = weighted_shares(mechanism, reports, areas, weights=w, population=9000)
    assert np.allclose(alone["total_high"], 9000 * alone["high"])
    assert "total" not in weighted_shares(mechanism, reports, areas, weights=w)


def test_missing_answers_are_left_out_or_a_class() -> None:
    mechanism, areas, reports = small()
    reports = np.where(np.arange(1000) < 100, -1, reports)
    out = weighted_shares(mechanism, reports, areas)
    inside = weighted_shares(mechanism, reports, areas, missing="class")
    assert (out["persons"].item(), out["missing"].item(), inside["persons"].item()) == (900, 100, 1000)
    assert json.loads(inside.attrs["areas"])[2] == NO_ANSWER
    assert inside["share"][0, 2].item() == pytest.approx(0.1)
    assert np.allclose(inside["estimate"][0, :2], 0.9 * out["estimate"][0])
    assert float(inside["estimate"].sum()) == pytest.approx(1)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"weights": np.zeros(1000)}, "must be positive"),
        ({"weights": np.ones(3)}, "must have 1000 values"),
        ({"by": ["a"] * 999 + ["b"]}, "fewer than two answers"),
        ({"population": 10}, "at least the 1,000"),
        ({"confidence": 1.0}, "below 1"),
    ],
)
def test_invalid_arguments_are_refused(given, message) -> None:
    mechanism, areas, reports = small()
    with pytest.raises(InputError, match=message):
        weighted_shares(mechanism, reports, areas, **given)
    with pytest.raises(InputError, match="below 3"):
        weighted_shares(mechanism, reports + 1, areas)


class Collections:
    """A population of persons at places, and reports of those who are asked, many times over."""

    def __init__(self, persons: int, seed: int, held: Channel | None = None, area: np.ndarray = AREA) -> None:
        self.held, self.random = held or channel(MECHANISM), np.random.default_rng(seed)
        self.places = self.random.choice(100, persons, p=truths()["check-ins"])
        self.cumulative = np.cumsum(self.held.table, axis=1)
        self.weights = linear_weights(self.held, area[:, None], np.full(100, 0.01))
        self.in_area = area[self.places] > 0

    def reports(self, asked):
        rows = self.cumulative[self.places[asked]]
        return np.minimum((self.random.random(len(asked))[:, None] > rows).sum(axis=1), rows.shape[1] - 1)


def weighted_coverage(collections: int) -> dict[str, float]:
    """People in the area are asked half as often: with weights 1 / pi, and without."""
    made, held = Collections(20_000, 1), {"weights": 0, "no weights": 0}
    probability = np.where(made.in_area, 0.04, 0.08)
    truth = made.in_area.mean()
    for _ in range(collections):
        asked = np.flatnonzero(made.random.random(len(made.places)) < probability)
        reports = made.reports(asked)
        for name, w in {"weights": 1 / probability[asked], "no weights": np.ones(len(asked))}.items():
            found = weighted_intervals(Sums.of(reports, w, 100), made.weights, Z)
            held[name] += found.low[0] <= truth <= found.high[0]
    return {name: count / collections for name, count in held.items()}


def domain_coverage(collections: int) -> dict[str, float]:
    """Two domains with different shares: each alone, the difference, and both at once (Bonferroni)."""
    made, held = Collections(200_000, 2), dict.fromkeys(("domain", "difference", "both"), 0)
    # More people of the area are in the first domain.
    first = made.random.random(len(made.places)) < np.where(made.in_area, 0.7, 0.3)
    truth = [made.in_area[group].mean() for group in (first, ~first)]
    z = quantile(0.95, intervals=2)
    for _ in range(collections):
        asked = made.random.choice(len(first), 2000)
        reports = made.reports(asked)
        sums = [Sums.of(reports[one], np.ones(one.sum()), 100) for one in (first[asked], ~first[asked])]
        alone, together = ([weighted_intervals(one, made.weights, level) for one in sums] for level in (Z, z))
        held["domain"] += alone[0].low[0] <= truth[0] <= alone[0].high[0]
        both = [one.low[0] <= share <= one.high[0] for one, share in zip(together, truth, strict=True)]
        held["both"] += all(both)
        away = alone[0].estimate[0] - alone[1].estimate[0] - (truth[0] - truth[1])
        held["difference"] += abs(away) <= Z * np.hypot(*(one.standard_error[0] for one in alone))
    return {name: count / collections for name, count in held.items()}


def population_coverage(collections: int) -> dict[str, float]:
    """1,500 of 2,000 persons, without replacement: with the correction (4), and without."""
    # Little noise and half of the map: most of the variance is that of the choice of persons.
    table = FAMILIES["laplacian_clamped"].table(md.load_problem("paris", cells=10, epsilon=0.004), 0.03)
    made = Collections(2_000, 3, Channel.of(table), block(slice(0, 5), slice(0, 10)))
    held = {"finite": 0, "infinite": 0}
    truth = made.in_area.mean()
    for _ in range(collections):
        asked = made.random.permutation(2_000)[:1_500]
        sums = Sums.of(made.reports(asked), np.ones(1_500), 100)
        for name, population in {"finite": 2_000, "infinite": None}.items():
            found = weighted_intervals(sums, made.weights, Z, population=population)
            held[name] += found.low[0] <= truth <= found.high[0]
    return {name: count / collections for name, count in held.items()}


def missing_coverage(collections: int) -> dict[str, float]:
    """People of the area answer less often: the class of missing answers, and the share of all persons."""
    made, held = Collections(200_000, 4), {"area": 0, "no answer": 0}
    answers = made.random.random(len(made.places)) < np.where(made.in_area, 0.6, 0.9)
    truth = [(made.in_area & answers).mean(), (~answers).mean()]
    estimator = with_class(made.weights, 0.2)
    for _ in range(collections):
        asked = made.random.choice(len(answers), 2000)
        reports = np.where(answers[asked], made.reports(asked), 100)
        found = weighted_intervals(Sums.of(reports, np.ones(2000), 101), estimator, Z)
        for k, name in enumerate(held):
            held[name] += found.low[k] <= truth[k] <= found.high[k]
    return {name: count / collections for name, count in held.items()}


def total_coverage(collections: int) -> dict[str, float]:
    """Persons of a domain in the area, with N known; people of the area are asked half as often."""
    made, held = Collections(20_000, 5), {"total": 0, "total of a domain": 0}
    probability, size = np.where(made.in_area, 0.04, 0.08), len(made.places)
    first = made.random.random(size) < np.where(made.in_area, 0.7, 0.3)
    truth = {"total": made.in_area.mean(), "total of a domain": (made.in_area & first).mean()}
    for _ in range(collections):
        asked = np.flatnonzero(made.random.random(size) < probability)
        reports, w = made.reports(asked), 1 / probability[asked]
        groups = [Sums.of(reports[one], w[one], 100) for one in (first[asked], ~first[asked])]
        everybody = sum_of(groups)
        pairs = {"total": (everybody, made.weights), "total of a domain": among_all(groups[0], everybody, made.weights)}
        for name, pair in pairs.items():
            found = weighted_intervals(*pair, Z, population=size)
            held[name] += found.low[0] <= truth[name] <= found.high[0]
    return {name: count / collections for name, count in held.items()}


def ratio_against_total(collections: int) -> dict[str, float]:
    """Hájek's share, and the total of Horvitz and Thompson over a known N: coverage, and root mean square errors."""
    # Everybody decides alone, so the number asked varies. The area is 80 % of the map, and its people are asked less.
    made, names = Collections(20_000, 6, area=np.arange(100) >= 20), ("Hájek", "Horvitz-Thompson")
    probability, size = np.where(made.in_area, 0.04, 0.08), len(made.places)
    truth, held, errors = made.in_area.mean(), dict.fromkeys(names, 0), {name: [] for name in names}
    for _ in range(collections):
        asked = np.flatnonzero(made.random.random(size) < probability)
        reports, w = made.reports(asked), 1 / probability[asked]
        found = weighted_intervals(Sums.of(reports, w, 100), made.weights, Z)
        each = w * made.weights.values[reports, 0] / size
        total, half = each.sum(), Z * np.sqrt((each**2).sum())
        for name, estimate, low, high in [
            ("Hájek", found.estimate[0], found.low[0], found.high[0]),
            ("Horvitz-Thompson", total, total - half, total + half),
        ]:
            held[name] += low <= truth <= high
            errors[name].append(estimate - truth)
    found = {name: count / collections for name, count in held.items()}
    return found | {f"error of {name}": float(np.sqrt(np.mean(np.square(one)))) for name, one in errors.items()}


COVERAGES = {
    "totals": total_coverage,
    "ratio": ratio_against_total,
    "weights": weighted_coverage,
    "domains": domain_coverage,
    "population": population_coverage,
    "missing": missing_coverage,
}


@pytest.mark.study
@pytest.mark.parametrize("name", COVERAGES)
def test_intervals_hold_in_a_thousand_collections(name) -> None:
    """Of 95 % intervals from 1,000 collections each: within three standard errors of a simulated coverage."""
    found = COVERAGES[name](1_000)
    print(name, found)
    spread = 3 * np.sqrt(0.95 * 0.05 / 1_000)
    left_out = ("no weights", "infinite", "error of Hájek", "error of Horvitz-Thompson")
    valid = {key: share for key, share in found.items() if key not in left_out}
    assert all(share >= 0.95 - spread for share in valid.values())
    assert all(share <= 0.95 + spread for key, share in valid.items() if key != "both")
    if name == "weights":  # the bias of unequal probabilities is larger than the interval
        assert found["no weights"] < 0.8
    if name == "ratio":  # a ratio does not contain the chance in the number asked
        assert found["error of Horvitz-Thompson"] > 1.2 * found["error of Hájek"]
    if name == "population":  # without (4) the interval is too long
        assert found["infinite"] > found["finite"] + 0.01


def survey_file(folder, rows):
    """A mechanism of 4 x 5 cells, and a file of answers."""
    plain = md.Domain.grid((4, 5), cell=200.0, unit="m")
    metric = md.Euclidean(epsilon=0.02, unit="m")
    problem = md.DesignProblem(domain=plain, metric=metric, prior=md.priors.uniform(plain), loss=md.losses.Distance())
    md.save(md.baselines.exponential(problem), folder / "m.nc")
    (folder / "answers.csv").write_text("\n".join(["report,w,age", *rows]) + "\n")
    return "estimate", folder / "answers.csv", folder / "m.nc", "--areas", "2x2"


def test_command_reads_weights_domains_and_missing_answers(run, tmp_path) -> None:
    reports = np.random.default_rng(6).integers(0, 20, 3000)
    rows = [
        f"{'NA' if k % 10 == 0 else report},{1 + k % 3},{'1-20' if k % 2 else '21+'}"
        for k, report in enumerate(reports)
    ]
    words = survey_file(tmp_path, rows)
    options = ("--weights", "w", "--by", "age", "--json")
    code, out, _ = run(*words, *options, "--missing", "leave-out", "-o", tmp_path / "shares.csv")
    assert code == 0
    document = json.loads(out)
    areas = md.geo.Partition(names=("a",) * 1, label=np.zeros(20, np.int64))
    assert [(one["domain"], one["persons"], one["missing"]) for one in document["domains"]] == [
        ("21+", 1200, 300), ("1-20", 1500, 0),
    ]  # fmt: skip
    weights, answered = 1 + np.arange(3000) % 3, np.arange(3000) % 10 > 0
    found = weighted_shares(
        md.load(tmp_path / "m.nc"), np.where(answered, reports, -1), areas, weights=weights.astype(float)
    )
    kept = weights[answered]
    assert found["design_effect"].item() == pytest.approx(len(kept) * (kept**2).sum() / kept.sum() ** 2)
    listed = (tmp_path / "shares.csv").read_text().splitlines()
    assert listed[0].startswith("domain,area,estimate,share,low,high")
    assert len(listed) == 1 + len(document["areas"])
    code, out, err = run(*words, *options)
    assert code == 2
    assert "missing answer" in out + err
    code, out, _ = run(*words, "--weights", "w", "--missing", "class", "--population", 9000)
    assert code == 0
    assert out.replace("\n", " ").startswith(
        "Shares of 9,000 persons, from the answers of 3,000. 300 of these gave no answer."
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--weights", "none"), "no column named none"),
        (("--by", "none"), "no column named none"),
        (("--missing", "drop"), "unknown choice"),
        (("--population", "3", "--weights", "w", "--by", "age"), "at least the"),
        (("--weights", "w", "-o", "map.geojson"), "where on Earth"),
        (("--by", "age", "--against", "answers.csv"), "need areas and one mechanism"),
    ],
)
def test_command_refuses_options_by_name(run, tmp_path, options, message) -> None:
    words = survey_file(tmp_path, [f"{k % 20},{k + 1},{k % 2}" for k in range(40)])
    code, _, err = run(*words, *options)
    assert code == 2
    assert message in err


def test_zero_weights_and_unnamed_domains_are_refused(run, tmp_path) -> None:
    words = survey_file(tmp_path, ["1,0,a", "2,1,", "3,1,b"])
    assert "must be positive" in run(*words, "--weights", "w")[2]
    assert "every line" in run(*words, "--by", "age", "--columns", "count=w")[2]
