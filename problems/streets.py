r"""Privacy along streets: report a crossing of a road network, indistinguishable from those a short walk away.

    secrets   the nodes of a road network: synthetic, or read from tables of nodes and edges such as OSMnx writes
    prior     uniform, or proportional to the length of the streets that meet at a node
    metric    epsilon times the length of the shortest path along streets, both directions of a street alike
    loss      the distance from secret to report in m, along streets or straight

Claim: ours. scripts/streets.py sets privacy along streets beside straight-line privacy on one network.
"""

import numpy as np

from mechdesign import DesignProblem, priors
from mechdesign.base.memory import require_memory
from mechdesign.errors import InputError
from mechdesign.losses import Distance, TableLoss
from mechdesign.setting.problems.synthetic_roads import synthetic_roads
from mechdesign.setting.readers.roads import read_roads


def problem(
    nodes: int = 500,
    seed: int = 1,
    epsilon: float = 0.01,
    prior: str = "uniform",
    loss: str = "streets",
    nodes_file: str = "synthetic",
    edges_file: str = "synthetic",
    unit: str = "auto",
    largest_component: str = "no",
) -> DesignProblem:
    """The design problem.

    Parameters: nodes and seed of the synthetic network, a node per hectare; epsilon in nats per m; prior, uniform or
    length; loss, streets or straight; nodes_file and edges_file, CSV tables (both, or neither); unit of their x and y,
    m or degree, or auto (columns lon and lat are degrees, x and y m); largest_component, yes to keep that part only.
    Nodes in degrees stand on a plane, so that reports are asked for and given in degrees.
    """
    for name, value, known in (
        ("prior", prior, ("uniform", "length")),
        ("loss", loss, ("streets", "straight")),
        ("largest_component", largest_component, ("yes", "no")),
    ):
        if value not in known:
            raise InputError("unknown choice", field=name, value=value, remedy="use " + " or ".join(known))
    if (nodes_file == "synthetic") != (edges_file == "synthetic"):
        raise InputError(
            "a network has two tables", field="edges_file", value=edges_file, remedy="give nodes_file and edges_file"
        )
    if nodes_file == "synthetic":
        require_memory(nodes, nodes, tables=7, what="a mechanism over the nodes", field="nodes", remedy="use fewer")
        roads = synthetic_roads(nodes, seed)
    else:
        given = None if unit == "auto" else unit
        roads = read_roads(nodes_file, edges_file, unit=given, largest_component=largest_component == "yes")
    domain = roads.domain
    meeting = np.bincount(np.concatenate([roads.tail, roads.head]), np.tile(roads.length, 2), domain.size)
    return DesignProblem(
        domain=domain,
        metric=roads.metric(epsilon),
        prior=priors.uniform(domain) if prior == "uniform" else priors.proportional(meeting),
        loss=TableLoss(values=roads.distances(), units="m") if loss == "streets" else Distance(),
    )
