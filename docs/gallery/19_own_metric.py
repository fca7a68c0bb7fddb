"""
A metric of your own as a matrix
================================

`md.Matrix` takes the distances of named classes from a matrix. Here "often" is nearer to "sometimes" than to "never".
The matrix is checked pair by pair. One report changes the odds of two answers by a factor of at most e to the epsilon
times their distance.
"""

# sphinx_gallery_thumbnail_path = "tutorials/examples/images/thumbnails/19_own_metric.png"

import pandas as pd

import mechdesign as md

answers = ["never", "sometimes", "often", "no answer"]
apart = pd.DataFrame([[0, 1, 2, 1.5], [1, 0, 1, 1.5], [2, 1, 0, 1.5], [1.5, 1.5, 1.5, 0]], answers, answers)
domain = md.Domain.classes(answers)
metric = md.Matrix(apart, epsilon=1.0, unit="step")
problem = md.DesignProblem(domain, metric, [0.4, 0.3, 0.2, 0.1], md.losses.ZeroOne())
mechanism = md.solve(problem)
print(md.verify(mechanism))

# %%
# Rows and columns have the names of the answers.

print(md.probabilities(mechanism).sel({"secret": "often"}).to_series().round(3))
md.plot.mechanism(mechanism)
