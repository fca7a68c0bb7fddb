"""Likelihoods and statistical designs: Newton, EM, rays and their bounds. States no program."""
