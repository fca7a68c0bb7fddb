from .limits import PosteriorCap as PosteriorCap
from .limits import PosteriorLift as PosteriorLift
