"""
Where the eikonal weights fail: a hill of levels
================================================

This is from Koufogiannis' thesis, the chapter on locally Lipschitz privacy. After its Algorithm 3 it says: "In
practice, Algorithm 3 fails when the privacy level map is not smooth enough although we do not provide sufficient
conditions."
"""

# sphinx_gallery_thumbnail_path = "tutorials/examples/images/thumbnails/14_where_weights_fail.png"

# %%
# The problem
# -----------
# The algorithm solves K w = 1 with K(u, y) = e^{-f_y(u)}, and has a mechanism where w >= 0. Here is a hill of eps
# from 0.4 to 2 nats per unit, once smooth and once sharp, on 25 x 25 units.

import numpy as np

import mechdesign as md


def hill(steepness, cells=30):
    domain = md.Domain.grid((cells, cells), cell=25 / cells, unit="1")
    rise = 1 / (1 + np.exp(steepness * (np.hypot(*(domain.points - 12.5).T) - 8)))
    level = md.PrivacyLevel.from_values(domain, (0.4 + 1.6 * rise).reshape(cells, cells))
    metric = md.Eikonal(level=level, stencil=16)
    return md.DesignProblem(
        domain=domain, metric=metric, prior=md.priors.uniform(domain), loss=md.losses.SquaredDistance()
    )


# %%
# A condition
# -----------
# To first order in the cell size, weights are negative inside where Laplacian(log eps) > eps^2. `md.diagnosis` says
# so cell by cell, and solves the system beside it.

smooth, sharp = md.diagnosis(hill(0.5)), md.diagnosis(hill(2.0))
for name, found in [("smooth", smooth), ("sharp", sharp)]:
    inside = found.isel(secret=np.flatnonzero(found["ring"] >= found.attrs["border_rings"]))
    both = (inside["negative"] == 1) & (inside["predicted"] == 1)
    figures = [int(part.sum()) for part in (inside["predicted"], inside["negative"], both)]
    print("{:7} hill, cells inside: {} named by the rule, {} negative, {} in both".format(name, *figures))
md.plot.diagnosis(sharp)

# %%
# The remedy
# ----------
# `EikonalWeights` then still returns a private mechanism, with shorter edges or with reports outside the map, and says
# so. `Optimal` needs no weights.

mechanism = md.solve(md.EikonalWeights(problem=hill(2.0, cells=14)))
print(md.verify(mechanism))
md.plot.mechanism(mechanism)

# %%
# Differences
# -----------
# * "Smooth enough" becomes a rule that can be computed from the map: where Laplacian(log eps) exceeds eps^2, and
#   along the border, weights are negative. The rule is of first order. On coarse cells it is a forecast, next to the
#   solution.
# * "For a constant privacy level map, identity queries, and in the limit, we recover the Laplace mechanism": this holds
#   away from the border. At the border of a bounded grid of short steps weights are negative.
# * `scripts/curvature_rule.py` has five maps, and the effect of refinement on the map of Philadelphia.
