r"""A square grid at a constant privacy level, uniform prior, squared loss.

Claim: at least (in the limit). On growing grids with shrinking cells the eikonal mechanism tends to the planar Laplace
mechanism, of mean squared error 6 / eps^2; on finite grids the border cuts noise off, and the graph metric of a stencil
exceeds the Euclidean one.
"""

from mechdesign import DesignProblem, Domain, Eikonal, Euclidean, PrivacyLevel, priors
from mechdesign.closed_forms import planar_laplace
from mechdesign.errors import InputError
from mechdesign.losses import SquaredDistance


def problem(
    cells: int = 15, epsilon: float = 1.0, cell: float = 1.0, stencil: int = 8, metric: str = "eikonal"
) -> DesignProblem:
    """Knobs: cells per side; epsilon in nats per cell unit; cell, the size of a cell; metric, eikonal or euclidean."""
    if metric not in ("eikonal", "euclidean"):
        raise InputError("unknown metric", field="metric", value=metric, remedy="use eikonal or euclidean")
    domain = Domain.grid((cells, cells), cell=cell, unit="cell")
    eikonal = Eikonal(level=PrivacyLevel.constant(epsilon, "cell"), stencil=stencil)
    return DesignProblem(
        domain=domain,
        metric=eikonal if metric == "eikonal" else Euclidean(epsilon=epsilon, unit="cell"),
        prior=priors.uniform(domain),
        loss=SquaredDistance(),
    )


def published(epsilon: float = 1.0) -> dict[str, float]:
    """The limit: the mean squared error of the planar Laplace mechanism, in squared units."""
    return {"planar_laplace": planar_laplace.mean_squared_error(epsilon)}
