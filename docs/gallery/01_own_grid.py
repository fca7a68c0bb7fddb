"""
Your own grid, prior and loss
=============================

A domain, a metric, a prior and a loss are a problem. `md.solve` returns a certified table with a bound.
"""

# sphinx_gallery_thumbnail_path = "tutorials/examples/images/thumbnails/01_own_grid.png"

import numpy as np

import mechdesign as md

domain = md.Domain.grid((8, 6), 150, unit="m")
people = np.random.default_rng(0).integers(1, 100, domain.size)  # yours: one number a cell, x first
problem = md.DesignProblem(domain, md.Euclidean(0.005, unit="m"), people / people.sum(), md.losses.Distance())
mechanism = md.solve(problem)
print(f"{mechanism.attrs['expected_loss']:.1f} m off, no table below {mechanism.attrs['lower_bound']:.1f} m")
print(md.verify(mechanism))

# %%
# The picture shows the loss of every cell and the reports of three of them.

md.plot.mechanism(mechanism)
