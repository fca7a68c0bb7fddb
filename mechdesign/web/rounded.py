"""Round a certified table to multiples of 2^(62 - bits), and certify it again; an order of reports that packs small.

Rounding moves a mass by half a unit. Every row is first mixed with one common row c,

    A = (1 - t) P + t c,                                                                                             (1)

which brings rows nearer to each other. t is the least power of 2 with which the integers satisfy the claim.
"""

from __future__ import annotations

import bisect
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from mechdesign.base.arrays import Indices, Masses, Matrix, Vector
from mechdesign.base.formatting import number
from mechdesign.errors import InputError, UnsuitableError, VerificationError
from mechdesign.evaluation.loss import mechanism_loss
from mechdesign.mechanism.certificate import ROW_SUM, max_log_ratio, violations
from mechdesign.mechanism.hashing import seal
from mechdesign.mechanism.mechanism_file import MechanismFile
from mechdesign.verification.verify import Verification, require_certified

BITS = (32, 24)
ROW_BITS = 62
_UNIFORM = 2.0**-10  # of the common row, so that none of its masses is small
_MOST_POWER = -4  # of 2, for t: above it the report would hardly depend on the position: refuse instead
_SIDE = 8  # reports of a block; 8 columns of a city of 1,300 cells lie within the 32 kB that zlib looks back


@dataclass(frozen=True, kw_only=True, eq=False)
class RoundedTable:
    """A table whose masses are multiples of 2^(62 - bits), its proof, and its loss before and after.

    mixed: A of (1) in doubles (n, m), which was rounded; common: t c (m,).
    """

    mechanism: xr.Dataset
    checked: Verification
    bits: int
    before: float
    after: float
    mixed: Matrix
    common: Vector

    def sentence(self) -> str:
        """The loss of rounding, rounded up."""
        more = 100 * max(0.0, self.after / self.before - 1) if self.before > 0 else 0.0
        after, before = number(self.after, up=True, digits=6), number(self.before, up=False, digits=6)
        return (
            f"rounded to {self.bits} bits and certified again: the expected loss is {after} instead of {before}, "
            f"{number(more, up=True, digits=2)} % more"
        )


def check_bits(bits: object) -> int:
    """Refuse other bits than those of `BITS`."""
    if isinstance(bits, bool) or bits not in BITS:
        raise InputError("unknown size of masses", field="bits", value=bits, remedy="use 32 or 24")
    return int(bits)


def round_mechanism(mechanism: xr.Dataset, bits: int) -> RoundedTable:
    """Round the masses of a certified table, and certify the result; UnsuitableError if the claim does not allow it."""
    check_bits(bits)
    if "mass" not in mechanism:
        remedy = "export without bits: factors are small"
        raise InputError("applies to tables alone", field="bits", value=bits, remedy=remedy)
    file = MechanismFile.read(mechanism)
    table = mechanism["mass"].values / float(ROW_SUM)
    common = (1 - _UNIFORM) * table.mean(axis=0) + _UNIFORM / table.shape[1]
    powers = range(2 - bits, _MOST_POWER + 1)

    def mixture(power: int) -> Matrix:
        return np.asarray((1 - 2.0**power) * table + 2.0**power * common)

    least = bisect.bisect_left(powers, True, key=lambda power: _is_private(_rounded_rows(mixture(power), bits), file))
    if least == len(powers):
        raise _unsuitable_error(bits, "no rounded table has the claim")
    rows = mixture(powers[least])
    rounded = _with_masses(mechanism, _rounded_rows(rows, bits), file)
    try:
        checked = require_certified(rounded)
    except VerificationError as error:
        raise _unsuitable_error(bits, error.message) from error
    return RoundedTable(
        mechanism=rounded,
        checked=checked,
        bits=bits,
        before=float(mechanism.attrs["expected_loss"]),
        after=float(rounded.attrs["expected_loss"]),
        mixed=rows,
        common=2.0 ** powers[least] * common,
    )


def _unsuitable_error(bits: int, why: str) -> UnsuitableError:
    return UnsuitableError(f"too few bits for this table ({why})", field="bits", value=bits, remedy="use more bits")


def _rounded_rows(table: Matrix, bits: int) -> Masses:
    """Multiples (n, m) of 2^(62 - bits), at least one each, near 2^62 `table` (n, m), with rows of exactly 2^62."""
    units = np.maximum(np.rint(table * 2.0**bits).astype(np.int64), 1)
    # The largest mass of a row changes least, relatively, by the remainder.
    units[np.arange(len(units)), units.argmax(axis=1)] += 2**bits - units.sum(axis=1)
    if (units < 1).any():
        raise _unsuitable_error(bits, "a row has more reports than units")
    return units.astype(np.uint64) << np.uint64(ROW_BITS - bits)


def _is_private(mass: Masses, file: MechanismFile) -> bool:
    if violations(mass, file.edges) > 0:
        return False
    return file.positions is None or file.positions.breaches(mass) == 0


def _with_masses(mechanism: xr.Dataset, mass: Masses, file: MechanismFile) -> xr.Dataset:
    """The mechanism with other masses, and their figures; the bound is about all tables, so it stays."""
    changed: Any = mechanism.copy(deep=True)
    changed["mass"] = (mechanism["mass"].dims, mass, mechanism["mass"].attrs)
    ratio = float(mechanism.attrs["scale"]) * min(max_log_ratio(mass, file.edges).value, 1.0)
    changed.attrs["ratio"] = ratio
    loss = mechanism_loss(changed)
    # Any other objective is not recomputed here: verification then refuses the table.
    if mechanism.attrs.get("objective") == mechanism.attrs["expected_loss"]:
        changed.attrs["objective"] = loss
    changed.attrs["expected_loss"] = loss
    return seal(changed)


def packing_order(file: MechanismFile) -> Indices:
    """The order of reports (m,) that packs small: blocks of `_SIDE` columns, along the axis that is slow in a row."""
    points = file.report_domain.points if not file.same_places else file.domain.points
    if points.shape[1] != 2:
        return np.arange(len(points))
    x, y = points.T
    # Columns repeat each other, shifted by a cell: zlib finds the shift only among the reports just before.
    column = np.unique(np.round(y, 9), return_inverse=True)[1]
    return np.lexsort((column % _SIDE, x, column // _SIDE)).astype(np.int64)


def units_of(mass: Masses, bits: int, order: Indices) -> Masses:
    """Units (m, n) of 2^(62 - bits): the packed form of masses (n, m)."""
    return np.asarray((mass[:, order].T >> np.uint64(ROW_BITS - bits)).astype(np.uint32))
