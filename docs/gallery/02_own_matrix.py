"""
Audit a matrix of your own
==========================

`md.audit` computes the true epsilon of a table of any origin. Here the
rows of an exponential kernel were divided by their sums.
"""

# sphinx_gallery_thumbnail_path = "tutorials/examples/images/thumbnails/02_own_matrix.png"

import numpy as np

import mechdesign as md

domain = md.Domain.grid((6, 6), 150, unit="m")
problem = md.DesignProblem(domain, md.Euclidean(0.005, unit="m"), md.priors.uniform(domain), md.losses.Distance())
mine = np.exp(-0.005 * problem.loss_matrix)
mine /= mine.sum(axis=1, keepdims=True)
print(md.audit(mine, problem))

# %%
# The smallest change that keeps the claim is certified, and compared with the optimum.

repaired = md.baselines.repair_table(mine, problem)
optimal = md.solve(problem)
for name, mechanism in [("repaired", repaired), ("optimal", optimal)]:
    print(f"{name:9} {mechanism.attrs['expected_loss']:.1f} m off, certified: {md.verify(mechanism).certified}")
md.plot.mechanism(repaired)
