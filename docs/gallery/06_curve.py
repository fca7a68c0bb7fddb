"""
The privacy-utility curve
=========================

A sweep solves one problem at several scales of its metric. Closed forms are drawn at the scale that they truly have.
"""

# sphinx_gallery_thumbnail_path = "tutorials/examples/images/thumbnails/06_curve.png"

import mechdesign as md

curve = md.sweep(md.load_problem("philadelphia", cells=6), [0.5, 1.0, 2.0])
print(curve["loss"].values)
md.plot.sweep(curve)
