"""Priors: the probability of each secret, for which losses are expected."""

from mechdesign.setting.objective.priors import from_density, proportional, uniform

__all__ = ["from_density", "proportional", "uniform"]
