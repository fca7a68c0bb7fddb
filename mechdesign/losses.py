"""Losses: the cost of a report of a place, or of an answer to a query about it."""

from mechdesign.problem.losses import LOSSES, Distance, Loss, SquaredDistance, TableLoss, ZeroOne, named_loss
from mechdesign.problem.problem import query_problem
from mechdesign.problem.queries import Query

__all__ = [
    "LOSSES",
    "Distance",
    "Loss",
    "Query",
    "SquaredDistance",
    "TableLoss",
    "ZeroOne",
    "named_loss",
    "query_problem",
]
