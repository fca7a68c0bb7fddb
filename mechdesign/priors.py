"""Priors: the probability of each secret, for which losses are expected."""

from mechdesign.problem.losses import from_density, proportional, uniform

__all__ = ["from_density", "proportional", "uniform"]
