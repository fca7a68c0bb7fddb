"""Readers of the designer's files: places, rasters and tables."""

from mechdesign.problem.places import read_places as places
from mechdesign.problem.rasters import read_raster as raster
from mechdesign.problem.tables import read_table as table

__all__ = ["places", "raster", "table"]
