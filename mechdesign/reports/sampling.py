"""What `mechdesign sample` says: reports as cells, with no more digits than a cell has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from mechdesign.errors import InputError
from mechdesign.mechanism.sampler import Sampler
from mechdesign.setting.domain import AXES
from mechdesign.setting.places import identifying_digits, place_at, rounded


def sample_document(
    mechanism: xr.Dataset,
    *,
    at: Sequence[float] | None = None,
    secret: int | None = None,
    count: int = 1,
    seed: int | None = None,
) -> dict[str, Any]:
    """`count` reports for the place `at` (in the unit of the domain), or for the number `secret`: one of the two.

    One report without a seed is drawn by the guarded scan (`Sampler.report`), others from alias tables.
    Returns: secret, reports, report_x, report_y, report_z as far as there are, unit, bits, claim, cost. Coordinates are
        those of the cells, to a tenth of a cell: further digits would only look precise.
    Raises: VerificationError for a mechanism that is not certified; InputError for a place that is not there.
    """
    if (at is None) == (secret is None):
        raise InputError(
            "one place is needed",
            field="at",
            value="none" if at is None else "both",
            remedy="pass --at X Y, or --secret N",
        )
    sampler = Sampler(mechanism=mechanism)
    place = secret if at is None else place_at(sampler.admission.domain, at)
    assert place is not None
    guarded = count == 1 and seed is None
    drawn = sampler.report(place) if guarded else sampler.sample(place, count, seed=seed)
    axes = [a for a in AXES if f"report_{a}" in drawn.coords]
    names = [f"report_{a}" if f"report_{a}" in mechanism.coords else f"secret_{a}" for a in axes]
    digits = identifying_digits(np.column_stack([mechanism[name].values for name in names]))
    coordinates = {
        f"report_{a}": [rounded(x, kept) for x in np.ravel(drawn[f"report_{a}"].values).tolist()]
        for a, kept in zip(axes, digits, strict=True)
    }
    return {
        "secret": place,
        "reports": np.ravel(drawn.values).tolist(),
        **coordinates,
        "unit": drawn[f"report_{axes[0]}"].attrs["units"],
        **{name: drawn.attrs[name] for name in ("bits", "claim", "cost")},
    }
