"""Priors: the probability of each secret, for which losses are expected."""

from mechdesign.problem.cell_amounts import from_density
from mechdesign.problem.priors import proportional, uniform

__all__ = ["from_density", "proportional", "uniform"]
