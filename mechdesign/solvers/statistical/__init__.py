"""Likelihoods and statistical designs: Newton, EM, rays and their bounds."""
