"""Priors: the probability of each secret, by which losses are averaged."""

from mechdesign.problem.cell_amounts import from_density
from mechdesign.problem.priors import proportional, uniform

__all__ = ["from_density", "proportional", "uniform"]
