"""What reports say about everybody: estimates, distances between distributions, matched mechanisms, studies."""

from mechdesign.setting.readers.checkins import CheckIns
from mechdesign.setting.space.areas import Areas
from mechdesign.solvers.matching.explaining_prior import distance_range, explain
from mechdesign.solvers.matching.matched_distance import match_distance
from mechdesign.solvers.matching.matched_level import match_smallest_epsilon
from mechdesign.utility.population.estimation import (
    Estimate,
    empirical,
    expectation_maximization,
    expectation_maximization_steps,
    maximum_likelihood,
)
from mechdesign.utility.population.identifiability import asymptotic_mse, channel_rank
from mechdesign.utility.population.kantorovich import Kantorovich, kantorovich, kantorovich_batch
from mechdesign.utility.population.plan import epsilon_for, plan
from mechdesign.utility.population.shares import estimate_shares, load_estimate
from mechdesign.utility.population.study import Study, bands, utility_loss, utility_study

__all__ = [
    "Areas",
    "CheckIns",
    "Estimate",
    "Kantorovich",
    "Study",
    "asymptotic_mse",
    "bands",
    "channel_rank",
    "distance_range",
    "empirical",
    "epsilon_for",
    "estimate_shares",
    "expectation_maximization",
    "expectation_maximization_steps",
    "explain",
    "kantorovich",
    "kantorovich_batch",
    "load_estimate",
    "match_distance",
    "match_smallest_epsilon",
    "maximum_likelihood",
    "plan",
    "utility_loss",
    "utility_study",
]
