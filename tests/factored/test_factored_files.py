"""Files of factored mechanisms: read back, refused if incomplete, and an altered field is named."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from fixtures.factored_mechanisms import factored_mechanism
from fixtures.forged_files import rewritten
from fixtures.rows import few_by_default

import mechdesign as md
from mechdesign import load, save
from mechdesign.errors import VerificationError


@pytest.mark.parametrize("case", few_by_default(["eikonal, 16 neighbours", "ring road"], "ring road"))
def test_files_round_trip_and_verify(case: str, tmp_path) -> None:
    save(factored_mechanism(case), tmp_path / "f.nc")
    again = load(tmp_path / "f.nc")
    assert again.identical(factored_mechanism(case))
    assert md.verify(tmp_path / "f.nc").certified
    content = bytearray((tmp_path / "f.nc").read_bytes())
    content[len(content) // 2] ^= 4
    (tmp_path / "bad.nc").write_bytes(bytes(content))
    with pytest.raises(VerificationError):
        load(tmp_path / "bad.nc")


def alter_field(name: str) -> tuple[xr.Dataset, str]:
    """A mechanism with one field changed and sealed again, and a part of the reason."""
    mechanism = factored_mechanism("eikonal, 16 neighbours").copy(deep=True)
    values = {str(key): variable.values for key, variable in mechanism.data_vars.items()}
    if name == "weight":
        values["weight"][3] += np.uint32(1)
        return rewritten(mechanism), "row_sum"
    if name == "edge":
        values["edge_units"][:] = (values["edge_units"] * 1.001).astype(np.uint16)
        return rewritten(mechanism), "pairs break the claim"
    if name == "sum":
        values["row_sum"][2, 1] += np.uint64(1)
        return rewritten(mechanism), "first secret 2"
    if name == "target":
        values["target"][0] = 5
        return rewritten(mechanism), "expected_loss"
    if name == "prior":
        values["prior"][:2] = values["prior"][:2][::-1].copy()
        return rewritten(mechanism), "expected_loss"
    if name == "level":
        values["level"][0] *= 2
        return rewritten(mechanism), "level"
    if name == "loss":
        values["row_loss"][0] *= 1.1
        return rewritten(mechanism), "row_loss"
    if name == "step":
        return rewritten(mechanism, step=int(mechanism.attrs["step"] * 1.01)), "pairs break the claim"
    if name == "claim":
        return rewritten(mechanism, claim=mechanism.attrs["claim"].replace("16", "64", 1)), "claim"
    if name == "remapped":
        return rewritten(mechanism, expected_loss=mechanism.attrs["expected_loss"] * 0.9), "expected_loss"
    return rewritten(mechanism, ratio=0.5), "ratio"


@pytest.mark.parametrize(
    "name",
    ["weight", "edge", "sum", "target", "prior", "level", "loss", "step", "claim", "remapped", "epsilon"],
)
def test_altered_field_is_named(name: str) -> None:
    mechanism, reason = alter_field(name)
    checked = md.verify(mechanism)
    assert not checked.certified
    assert any(reason in stated for stated in checked.reasons), checked.reasons


@pytest.mark.parametrize("name", ["weight", "inner", "edge_units", "row_sum"])
def test_incomplete_file_is_refused(name: str) -> None:
    with pytest.raises(VerificationError, match="must be there"):
        md.verify(rewritten(factored_mechanism("eikonal, 16 neighbours").drop_vars(name)))


def test_place_out_of_range_is_refused() -> None:
    for name, bad in (("target", 16), ("inner", -1), ("inner", 2**62), ("edge_tail", -1), ("edge_head", 10**6)):
        mechanism = factored_mechanism("eikonal, 16 neighbours").copy(deep=True)
        mechanism[name].values[0] = bad
        with pytest.raises(VerificationError, match="must name places"):
            md.verify(rewritten(mechanism))


@pytest.mark.parametrize("name", ["weight", "inner", "edge_tail", "edge_head", "edge_units"])
def test_array_of_other_type_or_shape_is_refused(name: str) -> None:
    mechanism = factored_mechanism("eikonal, 16 neighbours")
    values, dims = mechanism[name].values, mechanism[name].dims
    for variable in ((dims, values.astype(float)), (dims, values.astype(np.int32)), ((*dims, "more"), values[:, None])):
        with pytest.raises(VerificationError):
            md.verify(rewritten(mechanism, **{name: variable}))
