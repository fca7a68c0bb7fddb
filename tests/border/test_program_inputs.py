"""Every documented input of every program survives save, load and verify."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from fixtures.absent_capabilities import needs
from fixtures.rows import few_by_default

import mechdesign as md
from mechdesign.extend import SOLVERS
from mechdesign.posteriors import PosteriorCap, PosteriorLift
from mechdesign.programs import Bounded, Constrained, ErrorCap, ReportCap, RequiredReport

INF = float("inf")
LINE = md.Domain.grid((4,), 1.0, unit="km")
PLANE = md.Domain.grid((3, 3), 1.0, unit="km")
MASKED = md.Domain.grid((3, 2), 1.0, unit="EUR", mask=[[True, True], [True, False], [True, True]])
SPACE = md.Domain.grid((2, 2, 2), 1.0, unit="m")
POINTS = md.Domain.points_at([[0.0, 1.0], [2.0, 0.0], [3.0, 3.0]], unit="nmi")
LEVEL = md.PrivacyLevel.from_values(PLANE, np.linspace(0.4, 0.6, 9).reshape(3, 3))
PEOPLE = [5, 0, 2, 9, 1, 1, 3, 4, 2]


def problem_on(domain, metric=None, prior=None, loss=None, **options) -> md.DesignProblem:
    metric = metric or md.Euclidean(0.8, unit=domain.unit)
    prior = md.priors.uniform(domain) if prior is None else prior
    return md.DesignProblem(domain, metric, prior, loss or md.losses.Distance(), **options)


def line(**options) -> md.DesignProblem:
    return problem_on(LINE, **options)


def plane(**options) -> md.DesignProblem:
    return problem_on(PLANE, **options)


def constrained_by(*constraints) -> Constrained:
    return Constrained(plane(), constraints=constraints)


def cap(**options) -> Constrained:
    return constrained_by(PosteriorCap(**({"radius": 0.6, "share": "3/4"} | options)))


def query_program(loss: str) -> md.programs.QueryWeights:
    labels = [0, 1, 1, 3]
    problem = md.losses.query_problem(
        domain=LINE, metric=md.Euclidean(0.8, unit="km"), prior=[0.4, 0.2, 0.2, 0.2], query=labels, loss=loss
    )
    return md.programs.QueryWeights(problem)


ZEROS = [0.5, 0.0, 0.5, 0.0]
ANSWERS = md.losses.TableLoss([[0, 1], [1, 0], [0.5, 0.5]], units="points")
NODES = md.Domain.nodes(3)
GRAPH = md.Graph(tail=[2, 1], head=[1, 0], length=[1, 2])
STREETS = md.geo.Streets(0.3, unit="nmi", tail=[0, 1], head=[1, 2], length=[3.0, 4.0])
DISCRETE = problem_on(md.Domain.nodes(3), md.Discrete(1.0), loss=md.losses.ZeroOne())
EIKONAL = plane(metric=md.Eikonal(LEVEL, stencil=16))
INPUTS = {
    "optimal": lambda: line(),
    "optimal, prior with zeros": lambda: line(prior=ZEROS),
    "optimal, single precision": lambda: line(prior=np.full(4, 0.25, np.float32)),
    "optimal, scaled": lambda: line(metric=0.3 * md.Euclidean(0.8, unit="km")),
    "optimal, level in another unit": lambda: line(metric=md.Euclidean(0.0005, unit="m")),
    "optimal, eikonal": lambda: EIKONAL,
    "optimal, mask and another unit": lambda: problem_on(MASKED),
    "optimal, three axes": lambda: problem_on(SPACE, loss=md.losses.SquaredDistance()),
    "optimal, three axes, eikonal": lambda: problem_on(
        SPACE, md.Eikonal(md.PrivacyLevel.constant(0.5, "m"), stencil=26)
    ),
    "optimal, points": lambda: problem_on(POINTS),
    "optimal, other reports": lambda: line(reports=md.Domain.points_at([0.5, 9.0], unit="km")),
    "optimal, answers": lambda: problem_on(
        md.Domain.nodes(3), md.Discrete(1.0), loss=ANSWERS, reports=md.Domain.nodes(2)
    ),
    "optimal, graph": lambda: problem_on(
        md.Domain.nodes(3), md.Graph(tail=[2, 1], head=[1, 0], length=[1, 2]), loss=md.losses.ZeroOne()
    ),
    "optimal, graph scaled": lambda: problem_on(
        md.Domain.nodes(3), 0.5 * md.Graph(tail=[2, 1], head=[1, 0], length=[1, 2]), loss=md.losses.ZeroOne()
    ),
    "optimal, streets": lambda: problem_on(
        POINTS, md.geo.Streets(0.3, unit="nmi", tail=[0, 1], head=[1, 2], length=[3.0, 4.0])
    ),
    "optimal, parameters": lambda: line(name="mine", parameters={"cells": np.int64(4), "word": "ä", "most": INF}),
    "eikonal": lambda: md.EikonalWeights(EIKONAL),
    "eikonal, prior with zeros": lambda: md.EikonalWeights(line(prior=ZEROS)),
    "query": lambda: query_program("zero-one"),
    "query, distance": lambda: query_program("distance"),
    "minimax": lambda: md.programs.Minimax(line(prior=ZEROS)),
    "bounded": lambda: Bounded(line(), worst_loss=2),
    "bounded, one each": lambda: Bounded(line(), worst_loss=[2.0, 1.5, 1.5, 2.0]),
    "bounded, some": lambda: Bounded(line(), worst_loss=[INF, 1.5, INF, INF]),
    "bounded, none": lambda: Bounded(line(), worst_loss=[INF] * 4),
    "bounded, no number": lambda: Bounded(line(), worst_loss=INF),
    "bounded, integers": lambda: Bounded(line(prior=ZEROS), worst_loss=np.array([2, 2, 2, 2])),
    "robust": lambda: md.programs.Robust(line(), priors=[ZEROS, [0.0, 1.0, 0.0, 0.0]]),
    "robust, of the shape of the grid": lambda: md.programs.Robust(plane(), priors=np.full((2, 3, 3), 1 / 9)),
    "constrained": lambda: constrained_by(),
    "constrained, report cap": lambda: constrained_by(ReportCap(cap=0.7)),
    "constrained, some reports": lambda: constrained_by(
        ReportCap(cap=Fraction(7, 10), reports=np.array([1, 2]), secrets=range(3))
    ),
    "constrained, required": lambda: constrained_by(RequiredReport(report=np.int64(4), least=0.05, secrets=(0, 1))),
    "constrained, error": lambda: constrained_by(ErrorCap(radius=1, share=0.9, secrets=[4])),
    "constrained, several": lambda: constrained_by(ReportCap(cap=0.9), RequiredReport(report=0, least=0.01)),
    "constrained, functions": lambda: constrained_by(
        lambda table: table[0, 0] <= 0.5, lambda table: [table[1, 1] <= 0.5]
    ),
    "constrained, share in words": lambda: cap(share="75%"),
    "constrained, share as a fraction": lambda: cap(share=Fraction(3, 4)),
    "constrained, share as a double": lambda: cap(share=0.75, wrong_by="3/2"),
    "constrained, discs about places": lambda: cap(centres="places"),
    "constrained, area": lambda: cap(centres="area"),
    "constrained, people": lambda: cap(people=np.array(PEOPLE, np.uint32)),
    "constrained, people by day and night": lambda: cap(people=[PEOPLE, PEOPLE[::-1]], share=0.9),
    "constrained, lift": lambda: constrained_by(PosteriorLift(radius=0.6, factor="5/2", people=PEOPLE)),
    "matched": lambda: md.programs.MatchedOptimal(line(), distance=0.6),
    "matched, of the problem": lambda: md.programs.MatchedOptimal(line(matched_distance=0.6)),
    "positions": lambda: md.positions.Positions(plane()),
    "positions, levels": lambda: md.positions.Positions(EIKONAL),
    "positions, corners": lambda: md.positions.Positions(plane(), corner_level=np.full((9, 4), 0.8)),
    "positions, quarters": lambda: md.positions.Positions(plane(), corner_level=np.full((9, 16), 0.8)),
    "statistical": lambda: md.surveys.StatisticalDesign(DISCRETE),
    "statistical, square": lambda: md.surveys.StatisticalDesign(DISCRETE, error="square", seed=np.int64(3)),
    "statistical, areas": lambda: md.surveys.StatisticalDesign(DISCRETE, error="areas", areas=np.array([0, 1, 1])),
    "statistical, loss": lambda: md.surveys.StatisticalDesign(DISCRETE, loss_weight=Fraction(1, 2)),
}
LEADING = (  # one of each program, and of each way to state an input
    *("optimal, prior with zeros", "optimal, single precision", "optimal, scaled", "optimal, mask and another unit"),
    *("optimal, three axes, eikonal", "optimal, other reports", "optimal, answers", "optimal, graph scaled"),
    *("optimal, streets", "optimal, parameters", "eikonal, prior with zeros", "query, distance", "minimax"),
    *("bounded, one each", "bounded, some", "bounded, none", "robust, of the shape of the grid"),
    *("constrained, some reports", "constrained, required", "constrained, error", "constrained, functions"),
    *("constrained, share as a double", "constrained, area", "constrained, people by day and night"),
    *("constrained, lift", "matched", "positions, quarters", "statistical, areas"),
)
LOOSE = {"statistical": 0.1, "positions": 0.05}  # gaps: files are tested here, not optima


def program_of(name: str) -> str:
    return name.split(",")[0]


@needs("positions", "surveys")
def test_every_program_is_tried():
    assert {program_of(name) for name in INPUTS} == set(SOLVERS)


@pytest.mark.parametrize("name", few_by_default(INPUTS, *LEADING))
def test_input_survives_save_load_verify(name, tmp_path):
    mechanism = md.solve(INPUTS[name](), gap=LOOSE.get(program_of(name), 1e-3))
    path = md.save(mechanism, tmp_path / "made.nc")
    checked = md.verify(path)
    assert checked.certified, checked.reasons
    assert md.load(path).attrs["program"] == program_of(name)
    assert md.load(path).identical(mechanism)
