"""Utility of a mechanism: its loss, the error of an adversary, and distances between distributions."""

from mechdesign.evaluation.adversary import AdversaryError, adversary_error
from mechdesign.evaluation.loss import expected_distance, mechanism_loss
from mechdesign.evaluation.privacy_radius import epsilon_within, nats_within
from mechdesign.evaluation.remap import bayes_remap, remapped_loss
from mechdesign.evaluation.retrieval import retrieval_radius, table_retrieval_radius
from mechdesign.evaluation.transport.kantorovich import Kantorovich, kantorovich
from mechdesign.problem.locate import nearest_node
from mechdesign.solvers.matched import match_distance, match_effective_epsilon

__all__ = [
    "AdversaryError",
    "Kantorovich",
    "adversary_error",
    "bayes_remap",
    "epsilon_within",
    "expected_distance",
    "kantorovich",
    "match_distance",
    "match_effective_epsilon",
    "mechanism_loss",
    "nats_within",
    "nearest_node",
    "remapped_loss",
    "retrieval_radius",
    "table_retrieval_radius",
]
