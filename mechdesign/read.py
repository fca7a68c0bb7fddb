"""Readers: what a problem is made of, from files of anybody."""

from mechdesign.setting.readers.areas import read_areas as areas
from mechdesign.setting.readers.checkins import read_checkins as checkins
from mechdesign.setting.readers.geojson import read_area as area
from mechdesign.setting.readers.georeferenced import raster_on
from mechdesign.setting.readers.microdata import read_microdata as microdata
from mechdesign.setting.readers.people import read_people as people
from mechdesign.setting.readers.positions import read_coordinates as positions
from mechdesign.setting.readers.raster_files import read_raster as raster
from mechdesign.setting.readers.reports import read_reports as reports
from mechdesign.setting.readers.roads import read_roads as roads
from mechdesign.setting.readers.table_files import read_places as places
from mechdesign.setting.readers.table_files import read_table as table

__all__ = [
    "area",
    "areas",
    "checkins",
    "microdata",
    "people",
    "places",
    "positions",
    "raster",
    "raster_on",
    "reports",
    "roads",
    "table",
]
