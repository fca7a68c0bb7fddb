"""Numbers released instead of places: queries, their smooth sensitivity, the laws of noise, the error of a mean."""

from mechdesign.closed_forms.mechanisms.release import mechanism
from mechdesign.closed_forms.noise import input_perturbation, laws
from mechdesign.closed_forms.sensitivity import query_functions, smooth_sensitivity
from mechdesign.setting.objective.queries import Query
from mechdesign.setting.problems.problem import query_problem
from mechdesign.setting.problems.release import release_problem as problem
from mechdesign.solvers.sensitivity.smooth_sensitivity import SmoothBound, cell_smooth_bound, least_smooth_bound
from mechdesign.utility.release_error import error_of_mean

__all__ = [
    "Query",
    "SmoothBound",
    "cell_smooth_bound",
    "error_of_mean",
    "input_perturbation",
    "laws",
    "least_smooth_bound",
    "mechanism",
    "problem",
    "query_functions",
    "query_problem",
    "smooth_sensitivity",
]
