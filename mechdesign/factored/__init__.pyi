from .dataset import FactoredMechanism as FactoredMechanism
