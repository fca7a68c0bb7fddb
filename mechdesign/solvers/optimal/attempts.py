"""The methods of the optimal program, and which of them is tried when.

Methods, in the order in which `auto` tries them; the next one goes on where a method's accuracy ends above the target:

    rays         a mixture of rays, which are added where a price is negative (rays.py): first where the median edge has
                 1.3 nats or more and secrets are at most 450; zeros of the prior, and distances of hundreds of nats, do
                 it no harm
    whole        the whole linear program by HiGHS (simplex up to 3,000 variables, else interior point), up to 60,000
                 constraints: the reference that all else is checked against
    rows         the program of a spanner by the block interior-point method, with further constraints as tables break
                 them (pair_rows.py): first for scattered places and all their pairs, where eikonal kernels do not fit
    boxed        passes over multipliers and a master over rays with its multipliers in a box (boxed_master.py): first
                 up to 700 secrets where eikonal multipliers cut three of ten nodes, as edges are short; not on roads,
                 where its multipliers settle slowly and blocks are sparse
    blocks       restricted programs by the block interior-point method, whose cost hardly depends on the number of
                 constraints: beyond 60,000 constraints always the first
    aggregation  restricted programs by HiGHS, with both of its scalings of far entries: which of them is accurate
                 depends on how the prior and the distances range
"""

from __future__ import annotations

from typing import Literal, get_args

from mechdesign.setting.problems.problem import DesignProblem
from mechdesign.solvers.optimal.pair_rows import suits_rows
from mechdesign.solvers.optimal.rays import SECRETS, suits

Method = Literal["auto", "rays", "rows", "boxed", "whole", "blocks", "aggregation"]
METHODS: tuple[Method, ...] = get_args(Method)
HIGHS = ("whole", "aggregation")  # methods by HiGHS alone

WHOLE_LIMIT = 60_000  # constraints of the whole program up to which it is solved at once
NETWORK_LIMIT = 10_000  # the same off grids with fewer than two edges a secret, as on roads, where blocks are faster
NETWORK_EDGES = 2  # for each secret, below which places off grids are such a network
# Shares of nodes that eikonal multipliers cut, below which restricted programs are small, and blocks are faster.
LEAST_CUT = {"rows": 0.1, "boxed": 0.3}
DENSE = 700  # secrets up to which the boxed master is tried: its columns are dense


def attempts_for(problem: DesignProblem, method: Method) -> list[str]:
    """The methods to try in turn: the one that was asked for, before rays where that is by HiGHS and priors are zero;
    for `auto` those in the order of the module docstring.
    """
    edges, size = len(problem.edges.tail), problem.domain.size
    network = problem.domain.kind != "grid" and edges < NETWORK_EDGES * size
    small = 2 * edges * problem.reports.size <= (NETWORK_LIMIT if network else WHOLE_LIMIT)
    if method in HIGHS and not problem.prior_array.all():
        return [method, "rays"]
    if method != "auto":
        return [method]
    if not small and problem.domain.kind != "grid" and suits_rows(problem):
        return ["rows", "blocks"] if problem.reports.size == size else ["rows"]
    few = suits(problem.edges.length)
    first = ["rays"] if few and size <= SECRETS else []
    late = ["rays"] if (small or few) and not first else []
    middle = ["boxed"] if not small and size <= DENSE and not network else []
    return [*first, *["whole"] * small, *middle, "blocks", *late, "aggregation"]
