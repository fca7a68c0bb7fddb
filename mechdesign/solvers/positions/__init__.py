"""Solvers of designs that are private between any two positions: cones for gradients, one block per report."""
