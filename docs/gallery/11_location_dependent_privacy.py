"""
Privacy that depends on the place: Philadelphia
===============================================

Koufogiannis and Pappas, "Location-dependent privacy": "a user within the greater Philadelphia area privately reports
her location, where the privacy concerns depend on the population density". A level map eps(u) is small where few
people live, and a mechanism is *locally Lipschitz private* if ln P(y|u) changes by at most eps(u) per unit of
distance.
"""

# sphinx_gallery_thumbnail_path = "tutorials/examples/images/thumbnails/11_location_dependent_privacy.png"

# %%
# The problem
# -----------
# The paper asks for the least expected squared distance over all such mechanisms, with the density as prior and eps
# from 0.4 to 2 nats per unit. The shipped problem states it on a grid. Here the map is stretched to 25 x 25 units, so
# that cells are near enough to be confused: 12 x 12 of them, 8 neighbours.

import mechdesign as md

problem = md.load_problem("philadelphia", cells=12, extent=25.0)
print(problem)

# %%
# The paper's mechanism
# ---------------------
# Algorithm 1 takes P(y|u) = w(y) e^{-f_y(u)}, f_y the eikonal distance to y, and weights for rows that sum to 1.
# `EikonalWeights` is that algorithm. It returns a table of integers in which every inequality was
# checked.

eikonal = md.solve(md.EikonalWeights(problem=problem))
print(f"loss {eikonal.attrs['expected_loss']:.4g} square units, certified: {md.verify(eikonal).certified}")
md.plot.mechanism(eikonal)

# %%
# Table I
# -------
# The paper stretches the map to 100 x 100 units. It compares its mechanism with the Laplace mechanism at the smallest
# level of the map, and with the optimum of a coarse discretization, without a bound. `Optimal` is that program, solved
# to a proved gap.

printed = {"Laplace": 37.5, "eikonal": 5.78, "optimal": 1.37}
print(f"{'':20}{'Laplace':>10}{'eikonal':>10}{'optimal':>10}{'no less than':>15}")
print(f"{'paper, 100 units':20}" + "".join(f"{loss:10}" for loss in printed.values()))
for words, stated in [("ours, 100 units", md.load_problem("philadelphia", cells=12)), ("ours, 25 units", problem)]:
    laplace, weights = md.baselines.planar_laplace(stated), md.solve(md.EikonalWeights(problem=stated))
    optimal = md.solve(md.Optimal(problem=stated), gap=1e-4)
    losses = [mechanism.attrs["expected_loss"] for mechanism in (laplace, weights, optimal)]
    print(f"{words:20}" + "".join(f"{loss:10.4g}" for loss in losses) + f"{optimal.attrs['lower_bound']:15.4g}")

# %%
# Differences
# -----------
# * The paper's eikonal figure is on 200 x 200 cells of GRUMPv1 data, and its optimum on 35 x 35. Ours are on one coarse
#   grid, where noise smaller than a cell is invisible. Losses of different grids cannot be compared.
#   :doc:`/results/large-maps` has 5.994 on 200 x 200 cells of the shipped map.
# * On one grid the optimum is within a few percent of the eikonal mechanism. The factor of four in the paper's table
#   compares two grids. On 35 x 35 cells of our map, no table that is private on the 8-neighbour graph has a loss as low
#   as 1.37.
# * The paper's continuous claim becomes one about a graph of 8 neighbours, whose distances exceed Euclidean ones by
#   up to 8.24 %. The file names the certified metric.
