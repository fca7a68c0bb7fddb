from .compact import CompactMap as CompactMap
from .compact_draw import MapSampler as MapSampler
from .compact_file import load_compact as load_compact
from .dataset import FactoredMechanism as FactoredMechanism
from .elastic import elastic_level as elastic_level
