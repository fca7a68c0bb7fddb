"""
Any two positions, not only cells
=================================

People are not at cell centres. `Positions` designs for the true positions: a step across a border changes a report's
probability as little as a step within a cell.
"""

# sphinx_gallery_thumbnail_path = "tutorials/examples/images/thumbnails/07_any_position.png"

import mechdesign as md

problem = md.load_problem("flat", cells=6, epsilon=0.5)
mechanism = md.solve(md.positions.Positions(problem))
print(md.verify(mechanism).position_claim)
sampler = md.Sampler(mechanism)
print(sampler.sample(at=[[2.99, 1.3], [3.01, 1.3]], size=3).values)  # two people on both sides of a border
md.plot.mechanism(mechanism)
