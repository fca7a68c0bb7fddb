"""
Privacy along streets
=====================

The distance may be that of a street network: two corners are hard to distinguish if the way between them is short.
"""

# sphinx_gallery_thumbnail_path = "tutorials/examples/images/thumbnails/05_streets.png"

import mechdesign as md

problem = md.load_problem("streets", nodes=60)
mechanism = md.solve(problem)
print(f"{problem.domain.size} corners, {mechanism.attrs['expected_loss']:.0f} m off along streets")
print(md.verify(mechanism))
md.plot.mechanism(mechanism)
