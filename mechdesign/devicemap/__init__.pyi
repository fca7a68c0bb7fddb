from .device_map import DeviceMap as DeviceMap
from .draw import MapSampler as MapSampler
from .files import load_device_map as load_device_map
