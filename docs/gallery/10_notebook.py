"""
In a notebook: tables, frames, progress
=======================================

A mechanism is an `xarray.Dataset`. Problems, audits and figures show themselves; comparisons are data frames.
"""

# sphinx_gallery_thumbnail_path = "tutorials/examples/images/thumbnails/10_notebook.png"

import mechdesign as md

problem = md.load_problem("line", cells=8)
problem  # noqa: B018

# %%
# Probabilities have labels, and so go to pandas in one step.

table = md.probabilities(md.solve(problem))
frame = table.to_pandas()
print(frame.round(3))

# %%
# `on_progress=print` prints the progress of long work; `md.compare` returns a data frame.

print(md.compare(problem)[["mechanism", "loss", "lower_bound"]].to_string(index=False))

# %%
# The last figure of a cell is drawn.

md.plot.mechanism(md.solve(problem))
