"""Random maps of an eikonal metric: short and long edges, cliffs of the level, masks, priors with zeros, every loss."""

from __future__ import annotations

import numpy as np

from mechdesign import DesignProblem, Domain, Eikonal, PrivacyLevel, Raster
from mechdesign.errors import InputError
from mechdesign.losses import Distance, SquaredDistance, ZeroOne
from mechdesign.priors import proportional

LOSSES = (SquaredDistance(), SquaredDistance(), Distance(), ZeroOne())


def random_map(seed: int, smallest: int = 4, largest: int = 9) -> DesignProblem:
    """The map of a seed: a grid of smallest to largest cells a side, of edges of 0.1 to 4 nats."""
    random = np.random.default_rng([seed, 23])
    while True:
        try:
            made = _drawn(random, smallest, largest)
            made.edges  # noqa: B018
        except InputError:  # a mask that leaves parts
            continue
        return made


def _drawn(random: np.random.Generator, smallest: int, largest: int) -> DesignProblem:
    shape = tuple(int(size) for size in random.integers(smallest, largest + 1, 2))
    low, high = np.sort(np.exp(random.uniform(np.log(0.1), np.log(4.0), 2)))
    values = np.exp(random.uniform(np.log(low), np.log(high), shape))
    kind = random.integers(3)
    if kind == 0:  # a cliff
        values = np.where(np.arange(shape[0])[:, None] < shape[0] // 2, low, high) * np.ones(shape)
    elif kind == 1:  # a smooth hill
        x, y = np.meshgrid(*(np.linspace(-1, 1, size) for size in shape), indexing="ij")
        values = low + (high - low) * np.exp(-3 * (x**2 + y**2))
    axes = [np.arange(size) + 0.5 for size in shape]
    level = PrivacyLevel(raster=Raster(x=axes[0], y=axes[1], values=values, unit="cell"), extend=True)
    mask = random.random(shape) < (0.8 if random.random() < 0.4 else 2.0)
    domain = Domain.grid(shape, cell=1.0, unit="cell", mask=mask)
    weights = [random.random(domain.size), 10.0 ** random.uniform(-6, 0, domain.size), np.ones(domain.size)]
    weight = weights[random.integers(3)]
    if random.random() < 0.3:
        weight = weight * (random.random(domain.size) < 0.7)
        weight[0] = 1.0
    metric = Eikonal(level=level, stencil=int(random.choice([4, 8, 16])))
    return DesignProblem(
        domain=domain, metric=metric, prior=proportional(weight), loss=LOSSES[random.integers(len(LOSSES))]
    )
