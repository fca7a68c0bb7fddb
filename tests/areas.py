"""Areas on the ground, and where a mechanism for one has its places."""

from __future__ import annotations

import json

import numpy as np
from conftest import ROOT

import mechdesign as md

PARK = ROOT / "problems" / "data" / "example_park.geojson"


def points_of(mechanism, dim):
    return np.column_stack([mechanism[f"{dim}_x"].values, mechanism[f"{dim}_y"].values])


def domain_of(mechanism):
    return md.Domain.from_description(json.loads(mechanism.attrs["domain"]), points_of(mechanism, "secret"))
