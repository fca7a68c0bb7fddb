"""Check a file against its printed verification: one list of untruths for tables and factored mechanisms."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from reference import factored, figures, geometry
from reference.claims import Claim, read_claim, unit_name
from reference.exact import Length, within
from reference.geometry import Lengths
from reference.positions import position_untruths
from reference.reading import File, Unreadable

ROW_SUM = 1 << 62
TABLE = "mechdesign/mechanism/2"
_SLACK = 1 + 1e-9  # relative, of a bound over the figure that it bounds


def untruths(file: Mapping[str, Any], printed: Mapping[str, Any]) -> list[str]:
    """Return the untrue parts of a printed verification: the claim `printed["claim"]` and all figures but None.

    file: nested lists, see the package's docstring. A file that cannot be read is untrue.
    """
    try:
        read = File(attrs=dict(file["attrs"]), variables=dict(file["variables"]))
        claim = read_claim(printed["claim"], read)
        if read.attrs.get("schema") == factored.FACTORED:
            return list(factored_untruths(read, claim, printed))
        if read.attrs.get("schema") == TABLE:
            return list(table_untruths(read, claim, printed))
        return ["no mechanism"]
    except (Unreadable, ArithmeticError, ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
        return [f"unreadable: {type(error).__name__}: {error}"]


def table_untruths(file: File, claim: Claim, printed: Mapping[str, Any]):
    """Of a table: masses, secrets, edges, privacy of all pairs that the sentence names, figures."""
    mass = file.values("mass", ("secret", "report"), "uint64")
    secrets, reports = file.points("secret"), file.points("report")
    if {len(mass), len(secrets)} != {claim.secrets} or {len(row) for row in mass} != {len(reports)}:
        raise Unreadable("rows, columns and places in different numbers")
    if any(sum(row) != ROW_SUM or min(row) < 1 for row in mass):
        yield "masses are not positive, or a row does not sum to 2^62"
        return
    lists = [file.values(f"edge_{part}", ("edge",), kind) for part, kind in _EDGE_PARTS]
    lengths = claimed_lengths(file, claim, lists)
    if printed["rebuilt"] not in (None, _REBUILT.get(claim.kind, "geometry")):
        yield f"rebuilt from {printed['rebuilt']!r}, for a metric that is {claim.kind}"
    yield from place_untruths(file, claim)
    yield from list_untruths(file, claim, lists, lengths)
    yield from privacy_untruths(mass, [ROW_SUM] * len(mass), lengths)
    prior, loss = figures.read_prior(file), figures.losses(file, secrets, reports)
    if file.attrs["loss"] in ("squared", "distance") and file.unit("secret") != file.unit("report"):
        yield "distances between places in different units"
    rows = figures.row_losses(mass, [ROW_SUM] * len(mass), loss)
    placed = "around_row" in file.variables
    true = figures.claimed_loss(file, prior, loss) if placed else figures.mean_loss(prior, rows)
    yield from loss_untruths(file, printed, true)
    yield from epsilon_untruths(file, claim, mass, lengths, lists, printed)
    yield from bound_untruths(file, printed, prior, loss, rows, true, lengths)
    yield from position_untruths(file, printed.get("position_claim"))


_REBUILT = {"graph": "edge list only", "streets": "streets"}
_EDGE_PARTS = (("tail", "int64"), ("head", "int64"), ("length", "float64"))


def factored_untruths(file: File, claim: Claim, printed: Mapping[str, Any]):
    """Of a factored mechanism: every probability built up from its integers, then as of a table."""
    built = factored.build(file)
    if not len(built.mass) == claim.secrets == len(file.points("secret")):
        raise Unreadable("rows and places in different numbers")
    if built.stored_sums != built.sums:
        yield "a stored row sum is another one"
    lists = None
    if claim.kind == "graph":
        lists = [file.values(f"claim_{part}", ("claimed",), kind) for part, kind in _EDGE_PARTS]
    lengths = claimed_lengths(file, claim, lists)
    yield from place_untruths(file, claim)
    if lists is not None:
        yield from list_untruths(file, claim, lists, lengths)
    elif len(lengths) != claim.edges:
        yield f"{claim.edges} edges said, {len(lengths)} neighbours"
    yield from privacy_untruths(built.mass, built.sums, lengths)
    prior = figures.read_prior(file)
    targets = [file.points("secret")[t] for t in built.target]
    loss = figures.losses(file, file.points("secret"), targets)
    rows = figures.row_losses(built.mass, built.sums, loss)
    true = figures.mean_loss(prior, rows)
    yield from loss_untruths(file, printed, true)
    yield from factored.figure_untruths(file, built, prior, loss, lengths, printed)
    yield from bound_untruths(file, printed, prior, loss, rows, true, lengths)


def claimed_lengths(file: File, claim: Claim, lists: Sequence[list[Any]] | None) -> Lengths:
    """d in nats between all secrets that the sentence names."""
    if claim.kind == "euclidean":
        return geometry.euclidean(file, claim.times * claim.epsilon)
    if claim.kind == "discrete":
        return geometry.discrete(claim.secrets, claim.times * claim.epsilon)
    if claim.kind == "streets":
        given = file.json_attribute("metric")
        streets = [given[part] for part in ("tail", "head", "length")]
        return geometry.listed_lengths(streets, claim.secrets, claim.times * claim.epsilon)
    if claim.kind == "eikonal":
        return geometry.eikonal(file, claim.stencil, claim.times)
    return geometry.listed_lengths(lists, claim.secrets, claim.times)


def place_untruths(file: File, claim: Claim):
    """Of unit and plane; `read_claim` has compared the rest of the sentence with metric and domain."""
    grid, unit = unit_name(file.json_attribute("domain")["unit"]), file.unit("secret")
    if unit != grid:
        yield f"places in {unit}, the grid in {grid}"
    if claim.excess is not None and not geometry.excess_on_ground(file) <= claim.excess:
        yield f"distances exceed geodesic ones by {geometry.excess_on_ground(file):.3g}"


def list_untruths(file: File, claim: Claim, lists: Sequence[list[Any]], lengths: Lengths):
    """Of the list of edges in the file: number, fingerprint, and that no length in it exceeds d."""
    tails, heads, listed = lists
    formats = (("<q", tails), ("<q", heads), ("<d", listed))
    digest = hashlib.sha256(b"".join(struct.pack(form, x) for form, part in formats for x in part))
    if claim.edges != len(tails) or claim.fingerprint != digest.hexdigest()[:12]:
        yield "another list of edges"
    pairs = [(min(ends), max(ends)) for ends in zip(tails, heads, strict=True)]
    named = set(lengths)
    if claim.kind == "euclidean":
        named = set(pairs)  # the others are implied, which the check of all pairs shows
    if len(set(pairs)) < len(pairs) or set(pairs) != named or not named <= set(lengths):
        yield "the list of edges is not that of the metric"
        return
    for pair, length in zip(pairs, listed, strict=True):
        if Fraction(length) > lengths[pair].bounds(250)[1]:
            yield f"edge {pair} is listed longer than it is"


def privacy_untruths(mass: Sequence[Sequence[int]], sums: Sequence[int], lengths: Lengths):
    """P(y|u) <= e^d P(y|v) for the given pairs, both ways, and every report."""
    for (u, v), length in lengths.items():
        for y, (a, b) in enumerate(zip(mass[u], mass[v], strict=True)):
            first, second = a * sums[v], b * sums[u]
            if not within(max(first, second), min(first, second), length):
                yield f"report {y} from secrets {u} and {v}: odds {first / second:.6g} over {float(length):.6g} nats"


def loss_untruths(file: File, printed: Mapping[str, Any], true: Fraction):
    """Of the expected loss, as verified and as stored."""
    for said in (printed["expected_loss"], file.attrs.get("expected_loss")):
        if said is not None and not figures.close(said, true):
            yield f"expected_loss {said!r}, which is {float(true)!r}"


def epsilon_untruths(file, claim, mass, lengths, lists, printed):
    """Of the effective epsilon, the steepest log-ratio over the length in the problem's own metric, and of where it is.

    Listed lengths are rounded down: the figure may be as large as they make it, and no smaller than the true one.
    """
    sums = [ROW_SUM] * len(mass)
    steepest = figures.steepest(mass, sums, lengths)
    short = {(min(u, v), max(u, v)): Length(Fraction(length)) for u, v, length in zip(*lists, strict=True)}
    largest = figures.steepest(mass, sums, short)
    if (worst := printed["worst"]) is not None:
        pair = (min(worst["secret"], worst["other"]), max(worst["secret"], worst["other"]))
        column = [[row[worst["report"]]] for row in mass]
        ends = ((lengths, steepest), (short, largest))
        if not any(figures.close(figures.steepest(column, sums, {pair: d[pair]}), most) for d, most in ends):
            yield f"worst {worst}, log-ratios over lengths reach {steepest!r}"
    rows = printed.get("row_ratio")  # of a file with a claim about positions, whose own ratio is 1
    if rows is not None and printed["ratio"] not in (None, 1.0):
        yield f"ratio {printed['ratio']!r} of certified positions"
    said, multiple = printed["ratio"] if rows is None else rows, file.attribute("scale", float)
    if said is None:
        return
    own = figures.problem_metric(file)
    if "problem_length" in file.variables:
        listed = file.values("problem_length", ("edge",), "float64")
        asked = geometry.listed_lengths([*lists[:2], listed], claim.secrets, Fraction(1))
    elif own is not None:
        asked = described_lengths(file, own, claim.secrets)
    elif multiple == 1:
        asked = lengths
    else:
        if not said >= 0:
            yield f"ratio {said!r}"
        return
    most = multiple * largest
    true = steepest if asked is lengths else figures.steepest(mass, sums, asked)
    for shown in (said, file.attrs.get("ratio", said)):
        if not figures.between(true, shown, max(most, true)):
            yield f"ratio {shown!r}, which is {true!r}, by the listed lengths {most!r}"


def described_lengths(file: File, metric: Mapping[str, Any], size: int) -> Lengths:
    """d in nats of a metric as files describe it; not for a graph."""
    times = Fraction(metric["multiplier"])
    if metric["kind"] == "euclidean":
        return geometry.euclidean(file, times * Fraction(metric["epsilon"]))
    if metric["kind"] == "discrete":
        return geometry.discrete(size, times * Fraction(metric["epsilon"]))
    if metric["kind"] == "streets":
        streets = [metric[part] for part in ("tail", "head", "length")]
        return geometry.listed_lengths(streets, size, times * Fraction(metric["epsilon"]))
    if metric["kind"] == "eikonal":
        return geometry.eikonal(file, metric["stencil"], times)
    raise Unreadable(f"problem metric {metric['kind']!r}")


def bound_untruths(file, printed, prior, loss, rows, true, lengths):
    """Of objective and lower bound: the bound is below the objective and follows from its multipliers."""
    value = true
    if "objective" in file.attrs:
        said = file.attribute("objective", float)
        objective = figures.true_objective(file, rows, true)
        if objective is not None and not figures.close(said, objective):
            yield f"objective {said!r}, which is {float(objective)!r}"
        value = Fraction(said)
    if "lower_bound" not in file.attrs:
        return
    bound = file.attribute("lower_bound", float)
    if not bound <= float(value) * _SLACK:
        yield f"lower_bound {bound!r} over {float(value)!r}"
    program = file.attribute("program", str)
    if printed["lower_bound_checked"] is not True and not printed.get("lower_bound_reason"):
        yield "a bound was not checked, and nothing says why"
    if printed["lower_bound_checked"] is not True and "mass" in file.variables and program != "constrained":
        yield f"a bound of program {program!r} was not checked"
    if program == "positions" and "objective" in file.attrs:
        least = min(map(sum, zip(*figures.position_costs(file), strict=True)))  # equal rows are within any cones
        if printed["lower_bound_checked"] and not bound <= float(least) * (1 + figures.BOUND_AGREE):
            yield f"lower_bound {bound!r}, the best constant report has {float(least)!r}"
    weights = figures.bound_weights(file, prior)
    if printed["lower_bound_checked"] and weights is not None:
        independent = figures.independent_bound(file, weights, loss, lengths)
        if independent is not None and not bound <= max(independent, 0.0) * (1 + figures.BOUND_AGREE):
            yield f"lower_bound {bound!r}, multipliers give {independent!r}"
