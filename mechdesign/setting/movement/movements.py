"""MOVEMENTS: the models of movement that files name; one from outside the package is one entry more."""

from __future__ import annotations

from mechdesign.errors import InputError
from mechdesign.setting.movement.home_away import HomeAway
from mechdesign.setting.movement.movement import Movement
from mechdesign.setting.movement.transitions import Transitions
from mechdesign.setting.movement.walk import Walk

MOVEMENTS: dict[str, type[Movement]] = {kind.kind: kind for kind in (Walk, Transitions, HomeAway)}


def movement_from_description(told: object) -> Movement:
    """The model that `Movement.describe` described, from data of anybody. Raises: InputError."""
    kind = told.get("kind") if isinstance(told, dict) else None
    if not isinstance(told, dict) or kind not in MOVEMENTS:
        known = " or ".join(MOVEMENTS)
        raise InputError("unknown model of movement", field="movement", value=kind, remedy=f"use {known}")
    return MOVEMENTS[str(kind)].from_description(told)
