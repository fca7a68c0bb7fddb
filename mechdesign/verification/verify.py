"""verify: prove or refuse the claim of a stored mechanism, trusting nothing but its integers.

The edges and lengths are rebuilt from the metric and the geometry, not taken from the file; the claim, the loss, the
effective epsilon and the lower bound are recomputed and compared with what the file says. Only where a file carries
given edges (a graph) is its own list the claim, and then the answer says "edge list only"; lengths in nats along given
streets are rebuilt from their lengths, and then it says "streets". Where the objective is not the expected loss, the
program is stated again from its parameters, and objective, limits and bound are checked against it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from mechdesign.base.records import FrozenRecord
from mechdesign.base.registry import Registry
from mechdesign.base.validation import validated
from mechdesign.errors import InputError
from mechdesign.evaluation.loss import loss_matrix, mechanism_loss
from mechdesign.evaluation.protection import Protection, protection
from mechdesign.mechanism.certificate import ROW_SUM, max_log_ratio
from mechdesign.mechanism.claim import MechanismFile, check_claim, unproved, verification_errors
from mechdesign.mechanism.hashing import file_digest
from mechdesign.mechanism.storage import file_sha256, load
from mechdesign.problem.losses import check_loss
from mechdesign.problem.priors import check_prior
from mechdesign.programs.constrained import Constrained
from mechdesign.programs.coupled import Coupled, SideRows, objective, stack_rows
from mechdesign.solvers.cone.pricing import ConePricer, coupled_bound, project_dual
from mechdesign.solvers.cone.warm_pricing import proved_bound
from mechdesign.solvers.limits import limit_solver
from mechdesign.solvers.result import Progress
from mechdesign.solvers.solve import SOLVERS, rebuilt_program

OF_A_MAP = "levels of the map"  # what a compact map is rebuilt from
AGREE = 1e-9  # relative agreement of figures that are recomputed in floating point
_EXPORTED = (".csv", ".json", ".parquet")  # suffixes of tables that say too little
_HDF5 = b"\x89HDF"  # what a NetCDF file begins with
Checked = dict[str, Any]  # fields of a `Verification`
OnProgress = Callable[[Progress], None] | None
Check = Callable[[MechanismFile, Any], tuple[list[str], bool | None]]
CHECKS: Registry[Check] = Registry("objective checks")  # of programs that are not `Coupled`, by name


def check_objective(stored: MechanismFile) -> tuple[list[str], bool | None]:
    """What is wrong with the objective and the limits of a mechanism whose objective is not the loss, and its bound.

    Returns: reasons; whether the stored bound follows from the stored multipliers, None where there is none, or where
    the program has constraints of the user's own, which a file cannot hold.
    Raises: KeyError for a program that cannot be stated again.
    """
    mechanism = stored.mechanism
    program = rebuilt_program(mechanism.attrs["program"], stored.problem, stored.parameters)
    if mechanism.attrs.get("objective_of") != program.objective_of:
        return [f"objective_of: is not {program.objective_of!r}"], None
    if program.name in CHECKS:
        return CHECKS[program.name](stored, program)
    if not isinstance(program, Coupled):  # an extension that states its program again and has no check
        raise KeyError(program.name)
    rows, table = program.side_rows(), mechanism["mass"].values / float(ROW_SUM)
    reasons = figure_differences(mechanism, {"objective": objective(program.base_cost(), rows, table)})
    over = np.flatnonzero(rows.excess_up(table))
    if len(over):
        reasons.append(f"{rows.names[over[0]]}: the limit is exceeded, there and at {len(over) - 1} other places")
    if isinstance(program, Constrained):
        limits = limit_solver(program)
        reasons += [] if limits is None else limits.breaches(mechanism["mass"].values)
        if stored.parameters.get("own_constraints"):
            return reasons, None
        stored_rows = None if limits is None else limits.stored_rows(mechanism)
        if stored_rows is not None:
            rows = stack_rows([rows, stored_rows], rows.matrix.shape[1])
    return reasons, _coupled_follows(mechanism, program, rows)


def _coupled_follows(mechanism: xr.Dataset, program: Coupled, rows: SideRows) -> bool | None:
    if "lower_bound" not in mechanism.attrs:
        return None
    problem, multipliers, dual = program.problem, mechanism["multiplier"].values, mechanism["dual"].values
    if multipliers.shape != rows.limit.shape or not (np.isfinite(multipliers).all() and np.isfinite(dual).all()):
        return False
    admissible = project_dual(multipliers, rows.share)
    pricer = ConePricer(problem.edges, problem.domain.size, problem.anchors)
    folded = rows.fold_down(program.base_cost(), admissible)
    return _agrees(mechanism, coupled_bound(pricer, folded, rows.limit, dual, admissible))


def _agrees(mechanism: xr.Dataset, bound: float) -> bool:
    """Whether the stored bound is at most the recomputed one."""
    return bool(mechanism.attrs["lower_bound"] <= bound + AGREE * max(abs(bound), 1e-300))


def figure_differences(mechanism: xr.Dataset, figures: Mapping[str, float | None]) -> list[str]:
    """Which attributes differ from the recomputed figures; those that are None have no attribute to compare."""
    stored: dict[str, float] = {name: mechanism.attrs.get(name, math.nan) for name in figures}
    return [
        f"{name}: the file says {stored[name]!r}, recomputed {value!r}"
        for name, value in figures.items()
        if value is not None and not (abs(stored[name] - value) <= AGREE * abs(value) < math.inf)
    ]


def unchecked_bound(mechanism: xr.Dataset, follows: bool | None, *, priced: bool = True) -> str | None:
    """Why the lower bound of a file is not to be shown as proved; None where it is proved, or there is none."""
    if follows or "lower_bound" not in mechanism.attrs:
        return None
    if follows is False:
        return "it does not follow from the stored multipliers"
    return "it rests on constraints that a file cannot hold" if priced else "its pricing was left out"


def bound_reasons(mechanism: xr.Dataset, follows: bool | None, loss: float) -> list[str]:
    """What is wrong with the lower bound, given whether it follows from the multipliers: it may not exceed what it
    bounds, the objective, or where there is none the recomputed loss.
    """
    reasons = ["lower_bound: does not follow from the stored multipliers"] * (follows is False)
    bound = mechanism.attrs.get("lower_bound", -math.inf)
    bounded = float(mechanism.attrs.get("objective", loss))
    if not bound <= bounded + AGREE * abs(bounded):
        reasons.append(f"lower_bound: {bound!r} exceeds {bounded!r}, which it should bound")
    return reasons


@dataclass(frozen=True, kw_only=True)
class Verification(FrozenRecord):
    """What was proved.

    certified: rows sum to exactly 2^62, no edge is violated and everything the file says was recomputed; violations:
    (edge, direction, report) triples that break the claim; claim: the claim as rebuilt; rebuilt: "geometry", "streets",
    "edge list only" or "levels of the map"; ratio: what the mechanism truly has over what it claims, largest log-ratio
    over length, and 1 where the claim about positions is certified; row_ratio: there, that of the rows of the table,
    which may exceed 1, since only means of them are drawn (positions/patches.py); effective_epsilon:
    `ratio` times the level of the problem's metric, in nats per unit (of a discrete metric: nats), None where that has
    no single level; worst: the secret, other and report that attain
    it, of rows; protection: what is protected, None where it is not certified, and of a session design; expected_loss,
    recomputed, None where the file has no prior; lower_bound_checked: True if the stored bound follows from the stored
    multipliers, None if there is none, or if it rests on constraints that a file cannot hold, or if that was not asked;
    lower_bound_reason: why a bound that the file names is not proved, and shown nowhere; sha256: of every byte of the
    file, as `sha256sum` prints it, None for what is no file; reasons: why it is not certified;
    windows, of a session design alone: for a calendar day and any 24 hours the most that they cost on any transcript,
    an exact multiple of the metric, and how many transcripts were walked through one by one, None where they are too
    many.
    """

    certified: bool
    violations: int | None
    claim: str | None
    rebuilt: str | None
    ratio: float | None
    worst: dict[str, int] | None
    expected_loss: float | None
    lower_bound_checked: bool | None
    lower_bound_reason: str | None = None
    reasons: list[str] = field(default_factory=list)
    position_claim: str | None = None
    position_breaches: int | None = None
    windows: dict[str, dict[str, Any]] | None = None
    sha256: str | None = None
    effective_epsilon: float | None = None
    row_ratio: float | None = None
    protection: Protection | None = None

    def facts(self) -> Mapping[str, object]:
        return {
            "certified": self.certified,
            **({} if self.protection is None else {"protects": self.protection.subject}),
            "ratio": self.ratio,
            "claim": self.claim,
            **({} if self.windows is None else {"windows": self.windows}),
            **({"reasons": "; ".join(self.reasons)} if self.reasons else {"expected_loss": self.expected_loss}),
        }

    def as_dict(self) -> dict[str, Any]:
        """The JSON form: protects, within and factor_within in place of `protection`, a factor without bound None."""
        document = asdict(replace(self, protection=None)) | protected(self.protection)
        del document["protection"]
        if self.windows is None:
            del document["windows"]
        return document


def protected(p: Protection | None) -> dict[str, Any]:
    """What is protected as JSON has it: the subject, the radius and the factor within it; None where there is none."""
    if p is None:
        return dict.fromkeys(("protects", "within", "factor_within"))
    factor = None if p.factor is None or math.isinf(p.factor) else p.factor
    return {"protects": p.subject, "within": p.within, "factor_within": factor}


@dataclass(frozen=True, kw_only=True)
class Kind:
    """How a kind of mechanism is verified.

    check(source, bound=, on_progress=), the fields of a `Verification`; protection(source), what is protected where it
    is certified. The source is a `MechanismFile` of Datasets; else source_type, its class in memory, holds(path),
    whether a file is of this kind, load(path), what is checked of a file, opened(path), where that is another, what it
    holds, and sampler(source, on_progress=), what draws reports.
    """

    check: Callable[..., Checked]
    protection: Callable[[Any], Protection | None] = lambda source: None
    source_type: type | None = None
    holds: Callable[[str | Path], bool] = lambda path: False
    load: Callable[[str | Path], Any] = Path
    opened: Callable[[str | Path], Any] | None = None
    sampler: Callable[..., Any] | None = None


@validated
def verify(source: Any, *, bound: bool = True, on_progress: OnProgress = None) -> Verification:
    """Verify a file or a mechanism in memory, a session design or a compact map, or the file of one.

    What a file says is rebuilt and recomputed. Everything that is wrong is returned: certified False, with reasons.

    Parameters
    ----------
    source : str, Path, Dataset, SessionDesign or DeviceMap
        What to verify.
    bound : bool
        Whether the lower bound of a factored mechanism is recomputed, which may take longer than all else.
    on_progress : callable
        Called with where the verification stands.

    Returns
    -------
    Verification
        `certified`, `ratio`, `effective_epsilon`, `claim`, `reasons` and more.

    Raises
    ------
    InputError
        If there is no such file, or it is an export.
    VerificationError
        If it is damaged: cut short, altered, not a mechanism, not what its schema says.

    Notes
    -----
    Cost: O(e m) integer comparisons, plus the pricing of every report where there is a lower bound.

    Examples
    --------
    >>> md.verify(md.baselines.exponential(md.load_problem("discrete", secrets=3))).certified
    True
    """
    path = source if isinstance(source, (str, Path)) else None
    kind = kind_of(source)
    if kind is not None:
        read_source, sha256 = (source, None) if path is None else (kind.load(path), file_sha256(path))
        return _verified(kind, read_source, sha256, bound, on_progress)
    if not isinstance(source, (str, Path, xr.Dataset)):
        raise InputError("must be a file or a mechanism", field="source", value=type(source).__name__)
    if path is not None and Path(path).suffix.lower() in _EXPORTED:
        remedy = "give the NetCDF file, or run python -m mechdesign.verification.verify_table on CSV or JSON"
        raise InputError("an exported table cannot rebuild its claim", field="file", value=path, remedy=remedy)
    mechanism = source if isinstance(source, xr.Dataset) else load(source)
    with verification_errors():
        stored = MechanismFile.read(mechanism)
    kind = KINDS[mechanism.attrs["schema"].rpartition("/")[0]]
    return _verified(kind, stored, file_digest(mechanism), bound, on_progress)


def _verified(kind: Kind, source: Any, sha256: str | None, bound: bool, on_progress: OnProgress) -> Verification:
    """The result of the check of a kind."""
    with verification_errors():
        fields = kind.check(source, bound=bound, on_progress=on_progress)
        protects = None if fields["reasons"] else kind.protection(source)
        stated = source.problem_metric.stated_level(source.domain.unit) if isinstance(source, MechanismFile) else None
    effective = None if stated is None or fields["ratio"] is None else fields["ratio"] * stated[0]
    return Verification(
        **fields, certified=not fields["reasons"], effective_epsilon=effective, protection=protects, sha256=sha256
    )


def loaded(path: str | Path) -> Any:
    """The mechanism of a file, of whatever kind. Raises: InputError, VerificationError, as loading it does."""
    kind = kind_of(path)
    return load(path) if kind is None else (kind.opened or kind.load)(path)


def certified(mechanism: Any, *, on_progress: OnProgress = None) -> Verification:
    """What `verify` proved of a mechanism. Raises: VerificationError where it does not certify it."""
    checked = verify(mechanism, on_progress=on_progress)
    if not checked.certified:
        raise unproved(checked.reasons)
    return checked


def _check_table(stored: MechanismFile, *, bound: bool = True, on_progress: OnProgress = None) -> Checked:
    """The fields of a `Verification` of a table."""
    mechanism, proof = stored.mechanism, check_claim(stored)
    mass = np.ascontiguousarray(mechanism["mass"].values)
    at = max_log_ratio(np.maximum(mass, np.uint64(1)), stored.edges)
    stored.problem_metric  # noqa: B018  the metric that `scale` is of fits that of the claim
    row_ratio = float(mechanism.attrs["scale"]) * (min(at.value, 1.0) if proof.violations == 0 else at.value)
    check_prior(mechanism["prior"].values, stored.domain.size)
    check_loss(loss_matrix(mechanism))
    loss = mechanism_loss(mechanism)
    reasons = proof.reasons + figure_differences(mechanism, {"expected_loss": loss, "ratio": row_ratio})
    differences, follows = _check_program(stored)
    reasons += differences
    reasons += bound_reasons(mechanism, follows, loss)
    placed = stored.positions is not None
    ratio = row_ratio if not placed else None if reasons else 1.0
    return {
        "violations": proof.violations,
        "claim": stored.claim,
        "rebuilt": stored.rebuilt,
        "ratio": ratio,
        "row_ratio": row_ratio if placed else None,
        "worst": {"secret": at.secret, "other": at.other, "report": at.report},
        "expected_loss": loss,
        "lower_bound_checked": follows,
        "lower_bound_reason": unchecked_bound(mechanism, follows),
        "reasons": reasons,
        "position_claim": mechanism.attrs["position_claim"] if placed else None,
        "position_breaches": proof.position_breaches,
    }


def _check_program(stored: MechanismFile) -> tuple[list[str], bool | None]:
    """Reasons to refuse the objective and the limits of a table, and whether its bound follows."""
    attrs = stored.mechanism.attrs
    name, entry = attrs["program"], SOLVERS.get(attrs["program"])
    has_objective = entry is not None and entry.rebuild is not None
    between_positions = entry is not None and entry.program.between_positions
    # A position draws means of rows, which limits and bounds between centres say nothing about.
    if stored.positions is not None and not between_positions and (has_objective or "lower_bound" in attrs):
        return [f"position_claim: limits and bounds of {name} are of rows, and no row is drawn alone"], None
    # The objective decides how limits and bound are checked: without it another check would take its place.
    if has_objective and "objective" not in attrs:
        return ["objective: is missing"], None
    return check_objective(stored) if "objective" in attrs else ([], _check_bound(stored))


def _check_bound(stored: MechanismFile) -> bool | None:
    mechanism, domain, edges = stored.mechanism, stored.domain, stored.edges
    if "lower_bound" not in mechanism.attrs:
        return None
    if "dual" not in mechanism or not np.isfinite(mechanism["dual"].values).all():
        return False
    loss = loss_matrix(mechanism)
    # Any anchors give a bound; which ones the design took cannot be told where the reports lie on the secrets.
    choices = [np.arange(domain.size)] * stored.same_places + [np.argmin(loss, axis=0)]
    straight = stored.metric.straight(domain)
    pricers = (ConePricer(edges, domain.size, anchors, straight) for anchors in choices)
    return any(_bound_follows(mechanism, pricer, loss) for pricer in pricers)


def _bound_follows(mechanism: xr.Dataset, pricer: ConePricer, loss: NDArray[np.float64]) -> bool:
    cost = mechanism["prior"].values[:, None] * loss
    return _agrees(mechanism, proved_bound(pricer, cost, mechanism["dual"].values))


KINDS: Registry[Kind] = Registry(  # by what schemas begin with
    "kinds", {"mechdesign/mechanism": Kind(check=_check_table, protection=protection)}
)


def kind_of(source: Any) -> Kind | None:
    """The kind of what is no Dataset and no NetCDF file: of an object, or of the file at a path; None for none."""
    if isinstance(source, xr.Dataset):
        return None
    if not isinstance(source, (str, Path)):
        return next(
            (kind for kind in KINDS.values() if kind.source_type is not None and isinstance(source, kind.source_type)),
            None,
        )
    place = Path(source)
    if place.is_file():
        with place.open("rb") as stream:
            if stream.read(4) == _HDF5:
                return None
    return next((kind for kind in KINDS.values() if kind.holds(source)), None)
