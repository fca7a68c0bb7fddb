"""Epsilons tuned to a distance or a level, and priors that explain them. States no program."""
