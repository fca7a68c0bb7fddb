"""Prove or refuse the claim of a stored mechanism from its integers alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mechdesign.base.arrays import Matrix
from mechdesign.base.records import FrozenRecord
from mechdesign.base.validation import validate_call
from mechdesign.errors import InputError
from mechdesign.evaluation.loss import loss_matrix, mechanism_loss
from mechdesign.evaluation.protection import Protection
from mechdesign.mechanism.certificate import max_log_ratio
from mechdesign.mechanism.claim import check_claim, proof_error
from mechdesign.mechanism.content import is_dataset
from mechdesign.mechanism.hashing import file_digest
from mechdesign.mechanism.mechanism_file import MechanismFile, verification_errors
from mechdesign.mechanism.storage import file_sha256, load, load_content
from mechdesign.problem.lattice import Edges
from mechdesign.problem.losses import check_loss
from mechdesign.problem.priors import check_prior
from mechdesign.verification.kinds import FILE_KINDS, FileKind, file_kind
from mechdesign.verification.tree_bound import tree_bound

if TYPE_CHECKING:
    import xarray as xr

    from mechdesign.solvers.result import Progress

OF_A_MAP = "levels of the map"  # the origin of a device map's edges
AGREE = 1e-9  # relative agreement of figures that are recomputed in floating point
_EXPORTED = (".csv", ".json", ".parquet")  # suffixes of tables without the data to rebuild their claim
OnProgress = Callable[["Progress"], None] | None
_PLAIN = "optimal"  # the program whose objective is the expected loss and whose bound is that of the multipliers


def agrees(mechanism: xr.Dataset, bound: float) -> bool:
    """True if the stored bound is at most the recomputed one."""
    return bool(mechanism.attrs["lower_bound"] <= bound + AGREE * max(abs(bound), 1e-300))


def figure_differences(mechanism: xr.Dataset, figures: Mapping[str, float | None]) -> list[str]:
    """Reasons for attributes that differ from recomputed figures; None is not compared."""
    stored = {name: float(mechanism.attrs.get(name, math.nan)) for name in figures}
    return [
        f"{name}: the file says {stored[name]!r}, recomputed {float(value)!r}"
        for name, value in figures.items()
        if value is not None and not (abs(stored[name] - value) <= AGREE * abs(value) < math.inf)
    ]


def unchecked_bound(mechanism: xr.Dataset, follows: bool | None, *, priced: bool = True) -> str | None:
    """The reason why the lower bound of a file is not proved, None if it is proved or absent."""
    if follows or "lower_bound" not in mechanism.attrs:
        return None
    if follows is False:
        return "it does not follow from the stored multipliers"
    return "it depends on constraints that a file cannot hold" if priced else "its pricing was skipped"


def bound_reasons(mechanism: xr.Dataset, follows: bool | None, loss: float) -> list[str]:
    """Reasons to refuse the lower bound."""
    reasons = []
    if follows is False:
        reasons.append("lower_bound: does not follow from the stored multipliers")
    bound = mechanism.attrs.get("lower_bound", -math.inf)
    # Programs with another objective than the expected loss bound that objective.
    bounded = float(mechanism.attrs.get("objective", loss))
    if not bound <= bounded + AGREE * abs(bounded):
        reasons.append(f"lower_bound: {bound!r} exceeds {bounded!r}, which it should bound")
    return reasons


@dataclass(frozen=True, kw_only=True)
class Verification(FrozenRecord):
    """The outcome of a verification; True if it is certified.

    Attributes
    ----------
    certified, reasons
        True if rows sum to exactly 2^62, no edge is violated and the whole file was recomputed; reasons against it.
    violations, claim, edge_source
        (edge, direction, report) triples that break the claim; the rebuilt claim; the origin of edges: "geometry",
        "streets", "edge list only" or "levels of the map".
    ratio, worst
        Largest log-ratio over claimed length, and the secret, other and report that attain it. The ratio is 1 if a
        claim between positions is certified.
    effective_epsilon
        Ratio times the level of the problem's metric, None without a single level.
    expected_loss, lower_bound_checked, lower_bound_reason
        Recomputed loss. True if the stored bound follows from the stored multipliers, None if there is nothing to
        check, or if constraints are not in the file. The reason why the bound is not proved.
    position_claim, position_breaches, row_ratio
        The claim between positions, and the (cell, report) pairs that break it. The ratio of rows, which may exceed 1
        there, since only means of rows are drawn.
    windows
        For a session design, the maximum cost of a calendar day and of any 24 hours, as a multiple of the metric. Also
        the number of enumerated transcripts, None if they are too many.
    protection, file, sha256
        The protection of a certified mechanism; its `MechanismFile`; the SHA-256 of its file.
    """

    certified: bool = field(init=False)
    violations: int | None
    claim: str | None
    edge_source: str | None
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
    file: MechanismFile | None = field(default=None, repr=False, compare=False)

    def __bool__(self) -> bool:
        """True if the mechanism is certified."""
        return self.certified

    def __post_init__(self) -> None:
        object.__setattr__(self, "certified", not self.reasons)

    def repr_fields(self) -> Mapping[str, object]:
        facts: dict[str, object] = {"certified": self.certified}
        if self.protection is not None:
            facts["protects"] = self.protection.subject
        facts |= {"ratio": self.ratio, "claim": self.claim}
        if self.windows is not None:
            facts["windows"] = self.windows
        if self.reasons:
            return facts | {"reasons": "; ".join(self.reasons)}
        return facts | {"expected_loss": self.expected_loss}

    def as_dict(self) -> dict[str, Any]:
        """The JSON form, with the keys of `protection_document`."""
        document = asdict(replace(self, protection=None, file=None)) | protection_document(self.protection)
        del document["protection"], document["file"]
        if self.windows is None:
            del document["windows"]
        # Scripts that read the document know the origin of edges as "rebuilt".
        return {"rebuilt" if name == "edge_source" else name: value for name, value in document.items()}


def protection_document(p: Protection | None) -> dict[str, Any]:
    """JSON form of a protection; an infinite factor is None, and so is everything without a protection."""
    if p is None:
        return dict.fromkeys(("protects", "within", "factor_within"))
    factor = None if p.factor is None or math.isinf(p.factor) else p.factor
    return {"protects": p.subject, "within": p.within, "factor_within": factor}


# Edges and lengths are rebuilt from the metric and the geometry. The claim, the loss, the effective epsilon and the
# lower bound are recomputed and compared with the file. The edges of a graph come from the file ("edge list only"), and
# lengths along its streets are rebuilt ("streets"). An objective other than the expected loss is stated again from the
# program's parameters, and its limits and bound are checked.
@validate_call
def verify(source: Any, *, bound: bool = True, on_progress: OnProgress = None) -> Verification:
    """Rebuild and recompute all figures of a mechanism; faults are returned as reasons, with certified False.

    Parameters
    ----------
    source : str, Path, Dataset, SessionDesign or DeviceMap
        A mechanism, a session design or a device map, or its file.
    bound, on_progress : bool, callable
        True to recompute the lower bound of a factored mechanism, which may take long; called with the progress.

    Returns
    -------
    Verification

    Raises
    ------
    VerificationError
        If the file is damaged or does not satisfy its schema.

    Examples
    --------
    >>> md.verify(md.baselines.exponential(md.load_problem("discrete", secrets=3))).certified
    True
    """
    return _verify(source, load, bound, on_progress)


def verify_cold(path: Path, *, bound: bool = True, on_progress: OnProgress = None) -> Verification:
    """Verify a file for one use in this process: the `MechanismFile` of a table has no xarray.Dataset."""
    return _verify(path, load_content, bound, on_progress)


def _verify(
    source: Any, read: Callable[[str | Path], xr.Dataset], bound: bool, on_progress: OnProgress
) -> Verification:
    kind = file_kind(source)
    if kind is not None:
        if isinstance(source, (str, Path)):
            return _verification(kind, kind.load(source), file_sha256(source), bound, on_progress)
        return _verification(kind, source, None, bound, on_progress)
    mechanism = source
    if isinstance(source, (str, Path)):
        if Path(source).suffix.lower() in _EXPORTED:
            remedy = "give the NetCDF file, or run python -m mechdesign.verification.verify_table on CSV or JSON"
            raise InputError("an exported table cannot rebuild its claim", field="file", value=source, remedy=remedy)
        mechanism = read(source)
    elif not is_dataset(source):
        raise InputError("must be a file or a mechanism", field="source", value=type(source).__name__)
    with verification_errors():
        file = MechanismFile.read(mechanism)
    kind = FILE_KINDS[mechanism.attrs["schema"].rpartition("/")[0]]
    return _verification(kind, file, file_digest(mechanism), bound, on_progress)


def _verification(
    kind: FileKind, source: Any, sha256: str | None, bound: bool, on_progress: OnProgress
) -> Verification:
    file = source if isinstance(source, MechanismFile) else None
    with verification_errors():
        checked = kind.check(source, bound=bound, on_progress=on_progress)
        protects = kind.protection(source) if checked.certified else None
        level = None if file is None else file.problem_metric.stated_level(file.domain.unit)
    effective = None if level is None or checked.ratio is None else checked.ratio * level[0]
    return replace(checked, effective_epsilon=effective, protection=protects, sha256=sha256, file=file)


def require_certified(mechanism: Any, *, on_progress: OnProgress = None) -> Verification:
    """The verification of a mechanism; raises a VerificationError if it is not certified."""
    checked = verify(mechanism, on_progress=on_progress)
    if not checked.certified:
        raise proof_error(checked.reasons)
    return checked


def check_table(file: MechanismFile, *, bound: bool = True, on_progress: OnProgress = None) -> Verification:
    """The verification of a table."""
    mechanism, proof = file.mechanism, check_claim(file)
    mass = np.ascontiguousarray(mechanism["mass"].values)
    # A mass of 0 is refused above; here it must not give an infinite logarithm.
    worst = max_log_ratio(np.maximum(mass, np.uint64(1)), file.edges)
    file.problem_metric  # noqa: B018  raises if the metric that `scale` is of does not fit that of the claim
    row_ratio = float(mechanism.attrs["scale"]) * (min(worst.value, 1.0) if proof.violations == 0 else worst.value)
    check_prior(mechanism["prior"].values, file.domain.size)
    check_loss(loss_matrix(mechanism))
    loss = mechanism_loss(mechanism)
    differences, follows = _check_program(file)
    reasons = [
        *proof.reasons,
        *figure_differences(mechanism, {"expected_loss": loss, "ratio": row_ratio}),
        *differences,
        *bound_reasons(mechanism, follows, loss),
    ]
    result = Verification(
        violations=proof.violations,
        claim=file.claim,
        edge_source=file.edge_source,
        ratio=row_ratio,
        worst={"secret": worst.secret, "other": worst.other, "report": worst.report},
        expected_loss=loss,
        lower_bound_checked=follows,
        lower_bound_reason=unchecked_bound(mechanism, follows),
        reasons=reasons,
        position_breaches=proof.position_breaches,
    )
    if file.positions is None:
        return result
    claim = mechanism.attrs["position_claim"]
    return replace(result, ratio=None if reasons else 1.0, row_ratio=row_ratio, position_claim=claim)


def _check_program(file: MechanismFile) -> tuple[list[str], bool | None]:
    """Reasons to refuse the objective and the limits of a table; True if its bound follows, None without one."""
    attrs = file.mechanism.attrs
    name = attrs["program"]
    if name == _PLAIN and file.positions is None and "objective" not in attrs:
        return [], _check_bound(file)
    # Imported here, with all programs and solvers.
    from mechdesign.solvers.solve import SOLVERS
    from mechdesign.verification.objectives import check_objective

    entry = SOLVERS.get(name)
    has_objective = entry is not None and entry.rebuild is not None
    between_positions = entry is not None and entry.program.between_positions
    # A position draws means of rows, which limits and bounds between centres say nothing about.
    if file.positions is not None and not between_positions and (has_objective or "lower_bound" in attrs):
        return [f"position_claim: limits and bounds of {name} are of rows, and no row is drawn alone"], None
    # The objective decides how limits and bound are checked. A forged file without it would get the weaker check.
    if has_objective and "objective" not in attrs:
        return ["objective: is missing"], None
    return check_objective(file) if "objective" in attrs else ([], _check_bound(file))


def _check_bound(file: MechanismFile) -> bool | None:
    mechanism, edges = file.mechanism, file.edges
    if "lower_bound" not in mechanism.attrs:
        return None
    if "dual" not in mechanism or not np.isfinite(mechanism["dual"].values).all():
        return False
    loss = loss_matrix(mechanism)
    cost = mechanism["prior"].values[:, None] * loss
    if trees_prove_bound(mechanism, edges, cost):
        return True
    # Imported here: a file with trees needs none of the solvers.
    from mechdesign.verification.objectives import pricing_proves_bound

    return pricing_proves_bound(file, loss, cost)


def trees_prove_bound(mechanism: xr.Dataset, edges: Edges, cost: Matrix) -> bool:
    """True if the trees of a file prove its lower bound for the cost (n, m), without pricing."""
    bound = tree_bound(mechanism, edges, cost)
    return bound is not None and agrees(mechanism, bound)
