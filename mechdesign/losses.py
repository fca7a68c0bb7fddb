"""Losses: what a report costs."""

from mechdesign.setting.objective.losses import (
    LOSSES,
    Distance,
    Loss,
    SquaredDistance,
    TableLoss,
    ZeroOne,
    named_loss,
)

__all__ = ["LOSSES", "Distance", "Loss", "SquaredDistance", "TableLoss", "ZeroOne", "named_loss"]
