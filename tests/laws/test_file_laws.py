"""Laws of files: nothing is lost in one, and nothing false in one is certified."""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path

import numpy as np
from fixtures.file_parts import plain
from fixtures.files import honest_file
from hypothesis import given
from hypothesis import strategies as some
from reference import untruths
from strategies import KINDS, LAW, SOLVED_LAW, changed_files, mechanisms

from mechdesign import export, load, save, verify
from mechdesign.errors import MechdesignError
from mechdesign.verification import verify_table


@given(KINDS.map(honest_file) | mechanisms())
@SOLVED_LAW
def test_loading_returns_the_saved_file(mechanism) -> None:
    """load(save(x)) == x: values, types, attributes and the verdict."""
    with tempfile.TemporaryDirectory() as folder:
        path = save(mechanism, Path(folder) / "m.nc")
        assert load(path).identical(mechanism)
        assert verify(path) == verify(mechanism)


@given(changed_files())
@LAW
def test_any_single_change_of_a_file_is_refused_or_true(mechanism) -> None:
    """An independent reader in plain Python finds nothing untrue in a file that is still certified."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            verification = verify(mechanism)
    except MechdesignError:
        return
    if verification.certified:
        assert untruths(plain(mechanism), verification.as_dict()) == []


@given(mechanisms(), some.sampled_from(["csv", "json"]), some.integers(0, 24), some.integers(0, 61))
@LAW
def test_exported_masses_are_proved_and_changed_ones_refused(mechanism, suffix: str, number: int, bit: int) -> None:
    """The stand-alone verifier believes the integers of a file and no other ones."""
    with tempfile.TemporaryDirectory() as folder:
        table = verify_table.read(str(export(mechanism, Path(folder) / f"table.{suffix}")))
    assert table.rows == mechanism["mass"].values.tolist()
    assert verify_table.faults_of(table) == []
    row = table.rows[number % len(table.rows)]
    row[number % len(row)] ^= 1 << bit
    assert verify_table.faults_of(table)
