"""Closed-form mechanisms, one a file, each with `mechanism(problem, ...)`; integers unrepaired, at the scale that
holds.
"""
