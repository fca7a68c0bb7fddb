from .device_map import CompactMap as CompactMap
from .draw import MapSampler as MapSampler
from .files import load_compact as load_compact
