"""The report of `mechdesign solve` and `area` on a new mechanism."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from dataclasses import field as dataclass_field
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from mechdesign.base.formatting import length, number, percent
from mechdesign.base.units import unit_word
from mechdesign.errors import DesignError, VerificationError
from mechdesign.evaluation.loss import constant_loss, position_loss
from mechdesign.evaluation.remap import remapped_loss
from mechdesign.mechanism.figures import relative_gap
from mechdesign.mechanism.mechanism_file import MechanismFile, stored_domain
from mechdesign.output.captions import readable_unit
from mechdesign.output.sentences import (
    any_gap,
    bound_sentence,
    error_sentence,
    has_large_gap,
    join_sentences,
    limit_sentences,
    protection_sentence,
    stopped_sentence,
    target_gap,
)
from mechdesign.output.text_tables import Block, note, where_possible
from mechdesign.problem.domain import Domain
from mechdesign.problem.losses import LOSSES
from mechdesign.problem.vocabulary import words_of
from mechdesign.programs.minimax import Minimax
from mechdesign.verification.verify import Verification, protection_document, verify

_WORDS = {
    "claimed_epsilon": "claimed eps",
    "effective_epsilon": "effective eps",
    "row_ratio": "ratio of rows",
    "any_gap": "gap over every mechanism",
}
_LAST = ("seconds", "peak_mb", "file", "fallback", "diagnosis", "published", "remark")  # of the figures
_UNBOUNDED = {"columns": "weighting certified columns", "noise": "certified noise"}  # methods, and their words
_ROWS = 5  # figures printed without --verbose
_FIRST = (
    *("fallback", "published", "remark", "effective_epsilon", "any_gap"),
    *("gap", "position_loss", "loss", "file", "program"),
)
_DOWN = ("lower_bound", "any_lower_bound", "cell_lower_bound")  # figures that are rounded down
_UP = (
    *("loss", "objective", "remapped_loss", "within_cell_error", "position_loss"),
    *("effective_epsilon", "ratio", "row_ratio"),
)
_FORMS = {"seconds": ".1f", "peak_mb": ".0f"}
_NAMED, _COUNTED = 5e-3, 1e-3  # probability from which a secret is named, and from which it is counted
_LOSSES = (
    *("loss", "lower_bound", "any_lower_bound", "remapped_loss"),
    *("within_cell_error", "position_loss", "cell_lower_bound"),
)
_LEVELS = ("claimed_epsilon", "effective_epsilon")
_UNPROVED = "the new mechanism does not verify and was not saved; report this problem"


def require_verified(mechanism: xr.Dataset) -> Verification:
    """Verify a new mechanism before it is saved. Raises DesignError if it is not certified."""
    try:
        checked = verify(mechanism)
    except VerificationError as error:
        raise DesignError(_UNPROVED, field="mechanism", value=error) from error
    if not checked.certified:
        raise DesignError(_UNPROVED, field="mechanism", value="; ".join(checked.reasons))
    return checked


@dataclass(frozen=True, kw_only=True, eq=False)
class SolveReport:
    """Figures of one mechanism, None if one does not exist. Losses are in loss units, levels in nats per unit."""

    # - gap: relative to the objective if objective_of names one, else to the loss.
    # - remapped_gap: relative to the remapped loss of a factored mechanism.
    # - within_cell_error: mean loss of moving positions to cell centres; position_loss: the loss to the true position.
    # - any_lower_bound, any_gap: bounds the loss of every mechanism with the claim between positions and the reports.
    # - cell_lower_bound: bounds the loss among mechanisms that are private between cell centres only.
    # - price: the relative excess of the objective over it.
    # - beside: further figures of the document.

    mechanism: xr.Dataset
    verification: Verification
    problem: str
    program: str
    secrets: int
    reports: int
    protects: str | None
    within: float | None
    factor_within: float | None
    claim: str | None
    loss: float
    objective: float | None
    objective_of: str | None
    lower_bound: float | None
    gap: float | None
    any_lower_bound: float | None
    any_gap: float | None
    remapped_loss: float | None
    remapped_gap: float | None
    within_cell_error: float | None
    position_loss: float | None
    position_claim: str | None
    cell_lower_bound: float | None
    price: float | None
    method: str | None
    claimed_epsilon: float | None
    effective_epsilon: float | None
    ratio: float | None
    row_ratio: float | None
    certified: bool
    stopped: str | None
    seconds: float
    peak_mb: float | None
    file: str | None
    fallback: Any
    diagnosis: Any
    beside: Mapping[str, Any] = dataclass_field(default_factory=dict)

    @classmethod
    def of(cls, mechanism: xr.Dataset, checked: Verification, *, seconds: float, file: Path | None) -> SolveReport:
        attrs, parameters = mechanism.attrs, json.loads(mechanism.attrs["parameters"])
        claimed = None if attrs.get("claimed_epsilon") is None else float(attrs["claimed_epsilon"])
        effective = checked.effective_epsilon
        if effective is None and claimed is not None and checked.ratio is not None:
            effective = claimed * checked.ratio
        loss, bound = float(attrs["expected_loss"]), attrs.get("lower_bound")
        bound = None if bound is None else float(bound)
        objective = None if attrs.get("objective") is None else float(attrs["objective"])
        value = loss if objective is None else objective
        is_factored = "mass" not in mechanism
        gap = remapped_gap = None
        # A factored file stores its remapped loss: to compute it again would take its whole table.
        if is_factored:
            remapped = attrs.get("remapped_loss")
        else:
            remapped = where_possible("the remapped loss", lambda: remapped_loss(mechanism), None)
        if bound is not None:
            gap = relative_gap(value, bound, 0.0 if is_factored else constant_loss(mechanism))
        if bound is not None and is_factored and remapped is not None:
            remapped_gap = relative_gap(float(remapped), bound, 0.0)
        return cls(
            mechanism=mechanism,
            verification=checked,
            problem=attrs["problem"],
            program=attrs["program"],
            secrets=mechanism.sizes["secret"],
            reports=mechanism.sizes["secret" if is_factored else "report"],
            **protection_document(checked.protection),
            claim=checked.claim,
            loss=loss,
            objective=objective,
            objective_of=attrs.get("objective_of"),
            lower_bound=bound,
            gap=gap,
            any_lower_bound=attrs.get("any_lower_bound"),
            any_gap=None if is_factored else any_gap(MechanismFile.read(mechanism)),
            remapped_loss=remapped,
            remapped_gap=remapped_gap,
            position_loss=where_possible("the loss at true positions", lambda: position_loss(mechanism), None),
            within_cell_error=where_possible("the error within cells", lambda: within_cell_error(mechanism), None),
            position_claim=checked.position_claim,
            cell_lower_bound=parameters.get("cell_lower_bound"),
            price=parameters.get("price"),
            method=parameters.get("method"),
            claimed_epsilon=claimed,
            effective_epsilon=effective,
            ratio=checked.ratio,
            row_ratio=checked.row_ratio,
            certified=checked.certified,
            stopped=attrs.get("stopped"),
            seconds=seconds,
            peak_mb=peak_memory_mb(),
            file=None if file is None else str(file),
            fallback=parameters.get("remedy"),
            diagnosis=parameters.get("diagnosis"),
        )

    def to_json(self) -> dict[str, Any]:
        hidden = ("mechanism", "verification", "beside")
        figures = {field.name: getattr(self, field.name) for field in fields(self) if field.name not in hidden}
        return {**figures, **self.beside}

    def words(
        self,
        *,
        verbose: bool = False,
        because: str | None = None,
        limit: float | None = None,
        first: str = "",
        more: str = "",
    ) -> Iterator[Block]:
        """The text of the report: `first`, `sentences`, `more`, then `rows`."""
        yield join_sentences([first, *self.sentences(because=because, limit=limit), more])
        yield self.rows(verbose=verbose)

    def sentences(self, *, because: str | None = None, limit: float | None = None) -> list[str | None]:
        """Sentences on protection, error and bound; because: why no more is protected; limit: seconds of the search."""
        stored = MechanismFile.read(self.mechanism)
        assert self.verification.protection is not None
        parts = [
            stopped_sentence(stored, self.stopped, self.gap, limit=limit),
            protection_sentence(self.verification.protection, because=because),
            limit_sentences(stored),
            error_sentence(stored, at_position=self.position_loss),
            bound_sentence(stored, at_position=self.position_loss, gap=self.gap),
        ]
        if self.method in _UNBOUNDED and self.any_gap is None:
            parts.append(f"Made by {_UNBOUNDED[self.method]}: it is not known how far the loss is from the minimum.")
        parts.append("The claim is proved in integers.")
        if self.price is not None:
            parts.append(_price(self.price, stored))
        if self.program == Minimax.name and self.mechanism["multiplier"].values.any():
            parts.append(f"{worst_prior(self.mechanism)}.")
        return parts

    def rows(self, *, verbose: bool = False) -> dict[str, str]:
        """Five figures, one a line; if `verbose` all figures and the claim."""
        stored, figures = MechanismFile.read(self.mechanism), self.to_json()
        # The sentences above the rows state these already.
        hidden = {"certified", "chosen", "protects", "within", "factor_within"}
        if not verbose:
            hidden |= {"claim", "position_claim", "row_ratio", "peak_mb", "objective_of"}
            hidden |= set() if self.any_gap is None else {"gap"}
            hidden |= {"objective", "loss"} if stored.positions is not None else set()
        if figures["fallback"] == "none":
            hidden.add("fallback")
        names = [name for name in figures if name not in _LAST] + [name for name in _LAST if name in figures]
        if not verbose:
            names = [name for name in _FIRST if figures.get(name) is not None and name not in hidden][:_ROWS]
        words = _WORDS | {"position_loss": f"loss at {words_of(stored.domain).truths}"}
        if self.position_loss is not None and stored.positions is None:
            words |= {"loss": "loss between centres"}
        loss_unit = readable_unit(stored.loss_unit)
        units = dict.fromkeys(_LOSSES, loss_unit)
        # The bound of another objective may have another unit.
        if self.objective_of is not None:
            units |= {"lower_bound": "", "cell_lower_bound": ""}
        per_length = f"nats per {unit_word(stored.domain.unit)}"
        units |= dict.fromkeys(_LEVELS, per_length if stored.domain.has_distances else "nats")
        return {
            words.get(name, name.replace("_", " ")): f"{_figure(name, figures[name])} {units.get(name, '')}".rstrip()
            for name in names
            if name not in hidden and figures[name] is not None
        }

    def exit_code(self, *, remedy: str) -> int:
        """1 if the search ended far above its gap or without a bound, unless a time limit or Ctrl-C ended it."""
        stored = MechanismFile.read(self.mechanism)
        target = target_gap(stored)
        if target is None or self.stopped in ("time", "interrupt"):
            return 0
        is_large, is_short = has_large_gap(stored, self.gap), self.stopped == "precision"
        # A bound of 0 is true of every loss and proves nothing; of a loss of 0 it is the whole proof.
        is_unproved = not self.lower_bound and self.loss > 0 and (is_large or is_short)
        if is_large or is_short:
            reached = f"the gap is {percent(self.gap or 0.0, up=True)}"
            if is_unproved:
                reached = "no lower bound above 0 was proved"
            saved = "" if self.file is None else f" and saved in {self.file}"
            note(f"warning: {reached}; the target was {percent(target)}. The table is certified{saved}. {remedy}")
        return int(is_large or is_unproved)


def _figure(name: str, value: Any) -> str:
    """Format a figure: losses and levels rounded up to six digits, bounds down, gaps and prices in percent."""
    if name in _FORMS:
        return format(value, _FORMS[name])
    if name in ("gap", "any_gap", "remapped_gap", "price"):
        return percent(value, up=True)
    if isinstance(value, float) and name.removeprefix("alternative_") in (*_UP, *_DOWN):
        return number(value, up=name not in _DOWN, digits=6)
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_figure('', item)}" for key, item in value.items())
    return f"{value:.9g}" if isinstance(value, float) else str(value)


def _price(price: float, stored: MechanismFile) -> str:
    """The cost of protecting positions instead of centres, and the cell size at which it is 1 %."""
    costs = f"Protecting any two positions instead of {words_of(stored.domain).centres} costs"
    if price <= 0:
        return f"{costs} nothing."
    most = f"{costs} at most {percent(price, up=True)} of the loss"
    cell = None if stored.positions is None else stored.positions.advised_cell(stored.problem_metric, price)
    if cell is None:
        return f"{most}."
    unit = stored.domain.unit
    size = f"{number(cell, digits=3)} times as wide" if unit == "cell" else f"of {length(cell, unit, digits=3)}"
    return f"{most}, and about 1 % with cells {size}."


def worst_prior(mechanism: xr.Dataset) -> str:
    """A sentence on the worst-case prior of a minimax mechanism: its most likely secrets."""
    # The multipliers of the rows "loss from u <= largest loss" are the worst prior, by duality, up to their sum.
    weight, domain = mechanism["multiplier"].values, stored_domain(mechanism)
    prior = weight / weight.sum()
    likeliest = [u for u in np.argsort(-prior, kind="stable")[:3] if prior[u] >= _NAMED]
    named = [f"{100 * prior[u]:.0f} % on {_secret_words(domain, u)}" for u in likeliest]
    others = int((prior >= _COUNTED).sum()) - len(named)
    rest = f", and the rest on {others} more" if others > 0 else ""
    return f"The worst-case prior puts {', '.join(named)}{rest}"


def _secret_words(domain: Domain, secret: int) -> str:
    if domain.labels is not None:
        return domain.labels[secret]
    if domain.kind == "nodes":
        return f"secret {secret}"
    words = ", ".join(f"{x:.4g}" for x in domain.points[secret])
    return (f"({words})" if domain.dimension > 1 else words) + ("" if domain.unit == "1" else f" {domain.unit}")


def within_cell_error(mechanism: xr.Dataset) -> float | None:
    """Mean loss of moving a uniform position in a cell to its centre: h^2 / 6 for squared loss on square cells."""
    loss = LOSSES.get(mechanism.attrs["loss"])
    domain = stored_domain(mechanism)
    return None if loss is None else loss.within_cell(domain)


def peak_memory_mb() -> float | None:
    """Largest resident memory of this process so far, in 10^6 bytes; None if the system does not report it."""
    try:
        import resource
    except ImportError:
        return None
    # ru_maxrss is in bytes on macOS and in units of 1,024 bytes on Linux.
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak * 1024 / 1e6
