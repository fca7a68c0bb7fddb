"""Closed-form mechanisms to compare a design with: each takes a problem and returns a certified mechanism."""

from mechdesign.closed_forms.mechanisms.constant import mechanism as constant
from mechdesign.closed_forms.mechanisms.exponential import mechanism as exponential
from mechdesign.closed_forms.mechanisms.geometric import mechanism as geometric
from mechdesign.closed_forms.mechanisms.planar_laplace import mechanism as planar_laplace
from mechdesign.closed_forms.mechanisms.randomized_response import mechanism as randomized_response
from mechdesign.verification.audit import repaired

__all__ = ["constant", "exponential", "geometric", "planar_laplace", "randomized_response", "repaired"]
