"""report.bin of a session design: its tables, its rule and its model. `handover/client/bundle.mjs` reads it.

    8 bytes "mdtraces" | version 1, uint32 | bytes of the header, uint32 | header, JSON | the tables, each as packed.py
    has it | body, zlib | SHA-256 of all

Arrays of the body, as in packed.py:

| array | type | of | meaning |
|---|---|---|---|
| distance | uint16 | n n | with a test: whole distances of places (across) from a place (down) |
| losses | float64 | n n | of naming a place (across) when another (down) is true |
| initial | float64 | s | distribution of the states before anything is released |
| place | uint32 d | s | of a model of matrices: where each state is |
| start | uint32 d | k (s + 1) | of each of its k matrices: the first entry of every row |
| state, probability | uint32 d, float64 | entries | its entries, row by row |
| far, near | float64 | n n | of the model of homes: G and L of home_away.py |
"""

from __future__ import annotations

import hashlib
import json
import zlib
from typing import Any

import numpy as np

from mechdesign.errors import SizeError, UnsuitableError
from mechdesign.mechanism.session.design import SessionDesign
from mechdesign.mechanism.session.moved import MovedTest, Test
from mechdesign.mechanism.session.rules import Clock, Risk
from mechdesign.mechanism.stored import read
from mechdesign.output.client.packed import VERSION, differences, packed, planes
from mechdesign.setting.movement.home_away import HomeAwayChain
from mechdesign.setting.movement.movement import Chain

MAGIC = b"mdtraces"
MOST_CELLS = 1 << 11
WINDOWS = ("1d", "24h", "7d", "14d", "30d")  # that a limit may be for


def packed_session(design: SessionDesign, about: dict[str, str | float]) -> bytes:
    """The file, of a design that was verified; about, what its header says to people.

    Raises: UnsuitableError for a rule or a model of movement that the client does not know; SizeError for more than
    2^11 places, or tables that `packed` refuses. Cost: that of `packed` for every table, and 8 n^2 bytes.
    """
    if type(design.rule) not in (Clock, Risk, MovedTest):
        raise UnsuitableError(
            "is none that a client follows", field="rule", value=design.rule.kind, remedy="use Clock, Risk or MovedTest"
        )
    if design.domain.size > MOST_CELLS:
        raise SizeError("too many places", field="cells", value=design.domain.size, remedy="use larger cells")
    tables = [
        packed(read(sampler.mechanism), sampler.admission, {"problem": str(sampler.mechanism.attrs["problem"])})
        for sampler in design.samplers
    ]
    model, moving = _model(design.chain)
    arrays = [planes(np.asarray(design.losses, "<f8")), *moving]
    told: dict[str, Any] = {
        "about": about,
        "cells": design.domain.size,
        "charges": [str(charge) for charge in design.charges],
        "claim": design.claim,
        "design": design.sha256,
        "ledger": design.admission.unit,
        "movement": model,
        "rule": design.rule.describe(),
        "tables": [len(table) for table in tables],
        "ticks": design.ticks,
        "unit": design.domain.unit,
        "worst": {words: str(design.worst(words)) for words in WINDOWS},
    }
    if design.test is not None:
        told["test"] = _test(design.test)
        arrays = [planes(np.ascontiguousarray(design.test.distance, "<u2")), *arrays]
    header = json.dumps(told, allow_nan=False, sort_keys=True).encode()
    before = MAGIC + VERSION.to_bytes(4, "little") + len(header).to_bytes(4, "little") + header
    body = zlib.compress(b"".join(arrays), 9)
    content = before + b"".join(tables) + body
    return content + hashlib.sha256(content).digest()


def _test(test: Test) -> dict[str, Any]:
    """The integers of a test, as text: JSON readers keep 53 bits."""
    made = test.offsets
    vectors = {name: [str(value) for value in getattr(made, name)] for name in ("p", "q")}
    return {**vectors, "far": made.far, "cost": str(test.rule.cost)}


def _model(chain: Chain) -> tuple[dict[str, Any], list[bytes]]:
    """What the header says of a model, and its arrays."""
    initial = planes(np.asarray(chain.initial, "<f8"))
    if isinstance(chain, HomeAwayChain):
        model = chain.model
        rates = np.stack(
            [np.asarray(each, float) for each in (model.leave, model.back, model.wander, model.mix)], axis=1
        )
        jumps = [planes(np.ascontiguousarray(each, "<f8")) for each in chain.kernels]
        return {"kind": "home-away", "rates": rates.tolist()}, [initial, *jumps]
    if type(chain) is not Chain:
        raise UnsuitableError(
            "is none that a client follows", field="movement", value=type(chain).__name__, remedy="use Walk or HomeAway"
        )
    held = chain.matrices
    told = {"kind": "matrices", "states": len(chain.place), "entries": [int(each.nnz) for each in held]}
    return told, [
        initial,
        differences(chain.place, 4),
        differences(np.concatenate([each.indptr for each in held]), 4),
        differences(np.concatenate([each.indices for each in held]), 4),
        planes(np.concatenate([each.data for each in held]).astype("<f8")),
    ]
