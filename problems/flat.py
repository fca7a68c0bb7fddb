r"""A square grid at a constant privacy level, uniform prior, squared loss.

Claim: at least (in the limit). On growing grids with shrinking cells the eikonal mechanism tends to the planar Laplace
mechanism, of mean squared error 6 / eps^2; on finite grids the border cuts noise off, and the graph metric of a stencil
exceeds the Euclidean one.
"""

from mechdesign import DesignProblem, Domain, Eikonal, PrivacyLevel, priors
from mechdesign.closed_forms.planar_laplace import mean_squared_error
from mechdesign.losses import SquaredDistance


def problem(cells: int = 15, epsilon: float = 1.0, cell: float = 1.0, stencil: int = 8) -> DesignProblem:
    """Parameters: cells per side; epsilon in nats per cell unit; cell, the size of a cell; stencil 4, 8, 16, 32 or 64.

    The problem euclidean has the same grids with the Euclidean metric over all pairs.
    """
    domain = Domain.grid((cells, cells), cell=cell, unit="cell")
    return DesignProblem(
        domain=domain,
        metric=Eikonal(level=PrivacyLevel.constant(epsilon, "cell"), stencil=stencil),
        prior=priors.uniform(domain),
        loss=SquaredDistance(),
    )


def published(epsilon: float = 1.0) -> dict[str, float]:
    """The limit: the mean squared error of the planar Laplace mechanism, in squared units."""
    return {"planar_laplace": mean_squared_error(epsilon)}
