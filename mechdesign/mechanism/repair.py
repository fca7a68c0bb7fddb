"""Repair: any table of numbers becomes a certified integer table, at near zero loss.

Three facts, in the order of use, where r_e <= e^{d_e} is the certified ratio of edge e = (u, v):
1. Envelope. U(u, y) = max_v e^{-d(u, v)} P(v, y) is the smallest private table above P. It is swept with factors
   e^{-d}(1 + 2^-40), a margin that absorbs every rounding error of the steps below.
2. Ceil-lift. If V_u <= r_e V_v then B = ceil(V) + c with c = ceil(1 / (min r - 1)) has B_u <= r_e B_v.
3. Slack. Row sums are scaled to at most 2^62. The rest w(u) = 2^62 - sum goes where it costs least: spread over the
   eikonal kernels where their weights allow it, the remainder into one column. A column absorbs w0(u) + theta once
   theta >= max_e ((U_u + w0_u) - r_e (U_v + w0_v)) / (r_e - 1), so the repair cannot fail.
Sums, maxima and minima of private columns are private, so the steps compose.

Source: Koufogiannis & Pappas 2016, end of section IV; Chatzikokolakis et al. 2017.
"""

from __future__ import annotations

import math

import numba
import numpy as np
import scipy.linalg

from mechdesign.base.arrays import Indices, Integers, Masses, Matrix, Unsigned
from mechdesign.base.threads import in_blocks
from mechdesign.base.validation import refuse_entries
from mechdesign.errors import DesignError, InputError
from mechdesign.mechanism.certificate import ROW_SUM, SINGLE_MARGIN, edge_ratios, row_sums_exact, violations
from mechdesign.mechanism.certificate_kernels import exceeds
from mechdesign.problem.lattice import Edges

MARGIN = 2.0**-40  # relative design margin on e^d; the claim itself keeps the full e^d
SHORTEST = 2.0**-30  # nats; the lift of fact 2 grows as 1 / length and would fill the table below this
_NOISE = (0.0, 1e-9)  # entries below are treated as solver noise: both are tried, the cheaper result is taken
_LEVEL = 1e-10  # relative spread of the row sums up to which rounding alone repairs a table
_ATTEMPTS = 60  # increases of the slack by half: a factor of 3e10
_COMPUTED = 1e-10  # nats, error of a closed form in doubles: a hundred times the largest seen
_ROWS = 256  # rows rounded at a time
_COLUMNS = 64  # columns per task of a thread: of a thousand rows they stay in its cache
_VACUOUS = 2.0**64  # the largest ratio in single precision
_BLOCK = 512  # reports remapped at a time


@numba.njit(cache=True, nogil=True)
def _raise_to_envelope(table, tail, head, factor, max_sweeps):  # type: ignore[no-untyped-def]
    """Relax (fact 1) every edge both ways until nothing changes, as Bellman and Ford do; False after `max_sweeps`."""
    for sweep in range(max_sweeps):
        has_changed = False
        for k in range(tail.size):
            # Alternate the order of edges: paths of ascending numbers settle in one sweep, descending ones in the next.
            e = k if sweep % 2 == 0 else tail.size - 1 - k
            row, other, f, is_breached = table[tail[e]], table[head[e]], factor[e], False
            # Most edges raise nothing. This test has no branch, so that it is vectorised.
            for y in range(row.size):
                is_breached |= (row[y] * f > other[y]) | (other[y] * f > row[y])
            if not is_breached:
                continue
            has_changed = True
            for y in range(row.size):
                a, b = row[y] * f, other[y] * f
                if a > other[y]:
                    other[y] = a
                elif b > row[y]:
                    row[y] = b
        if not has_changed:
            return True
    return False


@numba.njit(cache=True, nogil=True)
def _raise_slack(table, single, rest, tail, head, ratio, need):  # type: ignore[no-untyped-def]
    """Raise need (m,) to theta of fact 3 by column, where rest is w0; single: table + rest in single precision."""
    for e in range(tail.size):
        u, v, r = tail[e], head[e], ratio[e]
        # An edge that holds with room in single precision needs no slack.
        if not exceeds(single[u], single[v], np.float32(min(r, _VACUOUS) * SINGLE_MARGIN)):
            continue
        row, other, rest_u, rest_v, per_excess = table[u], table[v], rest[u], rest[v], 1 / (r - 1)
        for y in range(row.size):
            a, b = row[y] + rest_u, other[y] + rest_v
            more = (a - r * b) * per_excess if a > b else (b - r * a) * per_excess
            need[y] = more if more > need[y] else need[y]


def envelope(table: Matrix, edges: Edges, *, overwrite: bool = False) -> Matrix:
    """The smallest table >= `table` that is private with the design margin (fact 1). Cost: O(sweeps e m)."""
    raised = table if overwrite else np.array(table, float, order="C")
    # The margin makes the table private with room, which absorbs the rounding of every later step.
    factor, has_converged = np.exp(-edges.length) * (1 + MARGIN), []

    def raise_columns(start: int, stop: int) -> None:
        part = np.ascontiguousarray(raised[:, start:stop])
        # A shortest path has at most n - 1 edges; rounding may take some sweeps more.
        has_converged.append(_raise_to_envelope(part, edges.tail, edges.head, factor, 100 + len(table)))
        raised[:, start:stop] = part

    in_blocks(raise_columns, raised.shape[1], _COLUMNS)
    if not all(has_converged):
        raise DesignError("the envelope did not converge", field="table")
    return raised


def repair(
    table: Matrix, edges: Edges, cost: Matrix, kernel: Matrix | None = None, *, overwrite: bool = False
) -> Masses:
    """A certified integer table close to a table of probabilities.

    Parameters
    ----------
    table, cost : (n, m) array
        Finite, any rows; and prior times loss, which decides where slack goes.
    edges : Edges
        The claim.
    kernel : (n, k) array
        Columns private for the same edges and usable as reports 0..k-1, or None.
    overwrite : bool
        Use the table as working space and try only the plain repair, for large tables.

    Returns
    -------
    (n, m) uint64 array, entries >= 1, rows that sum to exactly 2^62, no violated edge

    Examples
    --------
    >>> problem = md.load_problem("discrete", secrets=3)
    >>> mass = md.extend.repair(np.eye(3), problem.edges, problem.weighted_loss)
    >>> [int(total) for total in mass.astype(object).sum(axis=1)] == [2**62] * 3
    True
    """
    largest = float(table.max())
    if not (np.isfinite(largest) and np.isfinite(table.min())):
        refuse_entries(~np.isfinite(table), table, "must be finite", field="table")
    if not largest > 0:
        raise InputError("must have a positive entry", field="table", value=0)
    if edges.length.min() < SHORTEST:
        raise InputError(
            "an edge is shorter than 2^-30 nats: merge these secrets, or raise eps",
            field="epsilon",
            value=f"{edges.length.min():.3g} nats",
        )
    # Zeroing noise makes the envelope smaller, but may cost a reported mass: neither is always better.
    candidates = []
    for noise in _NOISE[:1] if overwrite else _NOISE:
        if noise >= largest:
            break
        positive = np.maximum(table, 0.0, out=table) if overwrite else np.where(table > noise, table, 0.0)
        raised = envelope(positive, edges, overwrite=True)
        rows = raised.sum(axis=1)
        candidates.append(_to_integers(raised, edges, cost))
        if len(candidates) == 1 and (overwrite or rows.max() - rows.min() <= _LEVEL * rows.max()):
            return candidates[0]
        # Spread over kernel columns the slack may cost less than in one column; the envelope covers their rounding.
        spread = None if kernel is None else _spread(raised, kernel)
        if spread is not None:
            candidates.append(_to_integers(envelope(spread, edges, overwrite=True), edges, cost))
    return min(candidates, key=lambda mass: float((cost * mass).sum()))


def _spread(table: Matrix, kernel: Matrix) -> Matrix | None:
    """Level the row sums by adding kernel columns with weights >= 0; None if the kernels cannot."""
    rows = table.sum(axis=1)
    if kernel.shape[0] != kernel.shape[1]:
        return None
    # K a = max(rows) - rows levels the sums, and K b = 1 raises all of them alike: a + t b >= 0 for some t if b > 0.
    try:
        weights = scipy.linalg.solve(kernel, np.column_stack([rows.max() - rows, np.ones(len(rows))]))
    except (np.linalg.LinAlgError, scipy.linalg.LinAlgWarning):
        return None
    level, base = weights.T
    if base.min() <= 0:
        return None
    spread = table.copy()
    spread[:, : kernel.shape[1]] += kernel * np.maximum(level + max(0.0, float((-level / base).max())) * base, 0.0)
    return spread


def _to_integers(table: Matrix, edges: Edges, cost: Matrix) -> Masses:
    """Facts 2 and 3 for a table with the design margin; the slack goes into the cheapest column."""
    factor, shift = edge_ratios(edges.length)
    ratio = factor.astype(float) * 2.0 ** (-shift.astype(float))
    lift = _lift(factor, shift)  # fact 2
    n, m = table.shape
    rows = table.sum(axis=1)
    largest_sum = float(rows.max())
    rest = largest_sum - rows
    # The test of `exceeds` on a column that has its w0 already; freed before the masses are made.
    single = (table + rest[:, None]).astype(np.float32)
    need = np.zeros(m)
    _raise_slack(table, single, rest, edges.tail, edges.head, ratio, need)
    del single
    # Slack in column y costs w0 there, and theta in every row.
    column = int(np.argmin((rest @ cost) + need * cost.sum(axis=0)))
    # Ceilings and the lift of m entries, and the rounding of doubles, divided by the excess r - 1 as theta is.
    rounding = (m * (lift + 2) + m * 2.0**-53 * ROW_SUM) / ROW_SUM / min(1.0, float((ratio - 1).min()))
    slack = float(need[column]) * (1 + 1e-6) + rounding * largest_sum
    mass = np.empty((n, m), np.uint64)
    # Rounding can leave a row above 2^62: more slack makes the table smaller.
    for _ in range(_ATTEMPTS):
        scale = float(math.floor(ROW_SUM / (largest_sum + slack)))
        # In blocks of rows: a second table of doubles would double the memory.
        for start in range(0, n, _ROWS):
            mass[start : start + _ROWS] = np.ceil(table[start : start + _ROWS] * scale).astype(np.uint64)
        # Fact 2: after the ceiling this many units restore every inequality.
        # B_u < V_u + 1 + c <= r_e (V_v + c) + 1 - c (r_e - 1) <= r_e B_v
        mass += np.uint64(lift)
        missing = ROW_SUM - mass.sum(axis=1).astype(np.int64)
        if missing.min() >= 0:
            mass[:, column] += missing.astype(np.uint64)
            # The certificate decides, not the estimates above.
            if violations(mass, edges) == 0 and row_sums_exact(mass):
                return mass
        # 2^-50 of a row starts the growth where the estimate was 0.
        slack = slack * 1.5 + 2.0**-50
    raise DesignError("no slack makes the table exact: lengthen the shortest edge", field="table", value=f"{n} x {m}")


def _lift(factor: Unsigned, shift: Integers) -> int:
    """The lift c = ceil(1 / (r - 1)) for the smallest certified ratio r = R 2^-s."""
    r, s = min(
        set(zip(factor.tolist(), shift.tolist(), strict=True)), key=lambda pair: math.ldexp(float(pair[0]), -pair[1])
    )
    if s < 0:
        return 1
    excess = r - (1 << s)
    return max(1, -(-(1 << s) // excess))


def round_to_integers(table: Matrix, edges: Edges) -> Masses:
    """Round a closed form (n, m) to integers without repair: entries up, the rest into the largest of a row."""
    if not np.isfinite(table).all() or (table < 0).any() or (abs(table.sum(axis=1) - 1) > 1e-9).any():
        raise InputError("rows must be probabilities: non-negative, of sum 1", field="table")
    n, m = table.shape
    # Two units per entry are reserved: one for the ceiling, one so that no mass is 0.
    room = ROW_SUM - (m << 1)
    mass = np.ceil(table / table.sum(axis=1, keepdims=True) * float(room)).astype(np.int64) + 1
    # The rest is at least about -2^12 m, if doubles round up; the largest entry, at least 2^62 / m, absorbs it.
    mass[np.arange(n), np.argmax(mass, axis=1)] += ROW_SUM - mass.sum(axis=1)
    return mass.astype(np.uint64)


def rounding_share(edges: Edges, reports: int) -> float:
    """The share of every length, and of every row, that `round_private` needs for its rounding."""
    shortest = max(float(edges.length.min()), SHORTEST)
    return 4 * math.sqrt(reports / ROW_SUM / shortest) + _COMPUTED / shortest


def round_private(table: Matrix, edges: Edges) -> Masses:
    """The integers of a table (n, m) that is private for lengths shorter by `rounding_share`; the caller certifies."""
    # That share x of every row is spread evenly: entries of at least x 2^62 / m absorb the rounding, 2 units of each,
    # at most 4 m / (x 2^62) <= x d / 4 nats.
    even = min(rounding_share(edges, table.shape[1]), 1.0)
    return round_to_integers((1 - even) * table + even / table.shape[1], edges)


def best_reports(table: Matrix, cost: Matrix) -> tuple[Indices, float]:
    """For every report y the z (m,) that minimises sum_u table(u, y) cost(u, z), y itself on ties; and their loss."""
    target, total = np.arange(table.shape[1]), 0.0
    for start in range(0, len(target), _BLOCK):
        posterior_loss = table[:, start : start + _BLOCK].T @ cost
        place = np.arange(len(posterior_loss))
        unchanged, best = posterior_loss[place, start + place], posterior_loss.argmin(axis=1)
        smallest = posterior_loss[place, best]
        # y stays on a tie: argmin would pick the first of equals, and move reports for nothing.
        target[start : start + _BLOCK] = np.where(smallest < unchanged, best, start + place)
        total += float(smallest.sum())
    return target, total
