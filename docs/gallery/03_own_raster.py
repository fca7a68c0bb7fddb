"""
Levels and a prior from your own raster
=======================================

Where many people live less noise is enough. A raster gives both the prior and the privacy level of every place.
"""

# sphinx_gallery_thumbnail_path = "tutorials/examples/images/thumbnails/03_own_raster.png"

import numpy as np

import mechdesign as md

x, y = np.linspace(0, 4000, 41), np.linspace(0, 3000, 31)  # m
density = 200 + 5000 * np.exp(-((x[:, None] - 1500) ** 2 + (y - 1500) ** 2) / 800**2)  # people per square km
raster = md.Raster(x=x, y=y, values=density, unit="m")

domain = md.Domain.grid((8, 6), 500, unit="m")
level = md.PrivacyLevel.affine(raster, slope=1e-6, floor=0.001)  # nats per m
prior = md.priors.from_density(raster, domain)
problem = md.DesignProblem(domain, md.Eikonal(level=level), prior, md.losses.Distance())
mechanism = md.solve(problem)
print(f"levels from 0.001 to {float(mechanism['level'].max()):.4f} nats per m")
md.plot.mechanism(mechanism)
