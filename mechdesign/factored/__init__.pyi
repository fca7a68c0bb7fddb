from .mechanism import FactoredMechanism as FactoredMechanism
from .options import FactoredOptions as FactoredOptions
