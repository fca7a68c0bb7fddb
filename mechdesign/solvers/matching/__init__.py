"""Epsilons tuned to a distance or a level."""
