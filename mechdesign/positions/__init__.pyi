from .program import Positions as Positions
from .spline import spline_laplace as spline_laplace
