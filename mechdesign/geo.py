"""Places on Earth: areas, planes, streets, and what an epsilon means within a radius."""

from mechdesign.closed_forms.noise.privacy_radius import epsilon_within, nats_within
from mechdesign.mechanism.compact.file import load_compact
from mechdesign.mechanism.compact.map import CompactMap
from mechdesign.setting.metric.streets import Streets
from mechdesign.setting.problems.area import area_problem, plane_level
from mechdesign.setting.problems.synthetic_roads import synthetic_roads
from mechdesign.setting.readers.roads import Roads
from mechdesign.setting.space.area import Area
from mechdesign.setting.space.locate import nearest_node
from mechdesign.setting.space.plane import Plane
from mechdesign.verification.map_sampler import MapSampler

__all__ = [
    "Area",
    "CompactMap",
    "MapSampler",
    "Plane",
    "Roads",
    "Streets",
    "area_problem",
    "epsilon_within",
    "load_compact",
    "nats_within",
    "nearest_node",
    "plane_level",
    "synthetic_roads",
]
