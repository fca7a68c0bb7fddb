"""report.bin of a session design: its tables, its rule and its model. `web/device/bundle.mjs` reads it."""

from __future__ import annotations

from typing import Any

import numpy as np

from mechdesign.base.arrays import AnyArray
from mechdesign.errors import SizeError, UnsuitableError, VerificationError
from mechdesign.mechanism.container import pack_container
from mechdesign.mechanism.mechanism_file import MechanismFile
from mechdesign.sessions.design import SessionDesign
from mechdesign.sessions.home_away import HomeAwayChain
from mechdesign.sessions.movement import Chain
from mechdesign.sessions.rules import Clock, Risk
from mechdesign.verification.verify import verify
from mechdesign.web.client import folder_contents
from mechdesign.web.packed import pack_mechanism

MOST_CELLS = 1 << 11
WINDOWS = ("1d", "24h", "7d", "14d", "30d")  # that a limit may be for


# Its arrays, those marked d as differences:
#
# | array | type | of | meaning |
# |---|---|---|---|
# | table 0, table 1, ... | u1 | bytes | the tables, each as web/packed.py has it |
# | losses | f8 | n n | of naming a place (across) when another (down) is true |
# | initial | f8 | s | distribution of the states before anything is released |
# | place | u4 d | s | of a model of matrices: where each state is |
# | start | u4 d | k (s + 1) | of each of its k matrices: the first entry of every row |
# | state, probability | u4 d, f8 | entries | its entries, row by row |
# | far, near | f8 | n n | of the model of homes: G and L of `HomeAway` |
def packed_session(design: SessionDesign, about: dict[str, str | float]) -> bytes:
    """The file of a verified design; about, the text for people in its header."""
    if type(design.rule) not in (Clock, Risk):
        raise UnsuitableError("is not supported by the client", field="rule", value=design.rule.kind)
    if design.domain.size > MOST_CELLS:
        raise SizeError("too many places", field="cells", value=design.domain.size, remedy="use larger cells")
    tables = [
        pack_mechanism(
            MechanismFile.read(sampler.mechanism),
            sampler.certificate,
            {"problem": str(sampler.mechanism.attrs["problem"])},
        )
        for sampler in design.samplers
    ]
    model, moving = _model(design.chain)
    arrays = {f"table {k}": np.frombuffer(table, np.uint8) for k, table in enumerate(tables)}
    header: dict[str, Any] = {
        "about": about,
        "cells": design.domain.size,
        "charges": [str(charge) for charge in design.charges],
        "claim": design.claim,
        "design": design.sha256,
        "ledger": design.certificate.unit_id,
        "movement": model,
        "rule": design.rule.describe(),
        "tables": [len(table) for table in tables],
        "ticks": design.ticks,
        "unit": design.domain.unit,
        "worst": {words: str(design.worst(words)) for words in WINDOWS},
    }
    arrays |= {"losses": np.asarray(design.losses, float), **moving}
    return pack_container("session", header, arrays, differences=("place", "start", "state"))


def _model(chain: Chain) -> tuple[dict[str, Any], dict[str, AnyArray]]:
    initial = np.asarray(chain.initial, float)
    if isinstance(chain, HomeAwayChain):
        model = chain.model
        rates = np.column_stack([model.leave, model.back, model.wander, model.mix])
        far, near = (np.asarray(kernel, float) for kernel in chain.kernels)
        return {"kind": "home-away", "rates": rates.tolist()}, {"initial": initial, "far": far, "near": near}
    if type(chain) is not Chain:
        raise UnsuitableError("is not supported by the client", field="movement", value=type(chain).__name__)
    matrices = chain.matrices
    header = {"kind": "matrices", "states": len(chain.place), "entries": [int(matrix.nnz) for matrix in matrices]}
    return header, {
        "initial": initial,
        "place": chain.place.astype(np.uint32),
        "start": np.concatenate([matrix.indptr for matrix in matrices]).astype(np.uint32),
        "state": np.concatenate([matrix.indices for matrix in matrices]).astype(np.uint32),
        "probability": np.concatenate([matrix.data for matrix in matrices]).astype(float),
    }


def session_contents(design: SessionDesign, _: object) -> dict[str, bytes]:
    """Every file of the folder of a session design, by name, which is verified first."""
    proved = verify(design)
    if not proved.certified:
        raise VerificationError("is not certified", field="design", value=proved.reasons[0])
    worst = {words: f"{float(design.worst(words)):.4g}" for words in ("1d", "24h")}
    promised = f"A calendar day costs at most {worst['1d']}, any 24 hours at most {worst['24h']}, whatever is reported."
    about: dict[str, str | float] = {"problem": str(design.tables[0].attrs["problem"]), "promise": promised}
    words = {"claim": design.claim, "promise": promised, "ticks": str(design.ticks), "rule": design.rule.kind}
    words |= {"day": str(design.worst("1d")), "any": str(design.worst("24h"))}
    return folder_contents("web/device/SESSION.md", words, packed_session(design, about), about, design.domain.size)
