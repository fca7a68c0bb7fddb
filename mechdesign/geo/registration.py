"""Entries that `geo` adds to the core. Needs: none. With: factored, positions, posteriors, web."""

TABLES = {
    "commands": {
        "area": "mechdesign.geo.commands:area",
        "level": "mechdesign.geo.commands:level",
    },
    "metrics": {"streets": "mechdesign.geo.roads:Streets"},
    "exporters": {
        ".geojson": "mechdesign.geo.layer_commands:CELLS",
        ".gpkg": "mechdesign.geo.layer_commands:CELLS",
        ".tif": "mechdesign.geo.layer_commands:CELLS",
        ".tiff": "mechdesign.geo.layer_commands:CELLS",
        "cells.parquet": "mechdesign.geo.layer_commands:CELLS",
    },
    "point formats": {
        ".geojson": "mechdesign.geo.point_layers:GEOJSON",
        ".gpx": "mechdesign.geo.point_layers:GPX",
        ".gpkg": "mechdesign.geo.point_layers:GEOPACKAGE",
        ".shp": "mechdesign.geo.point_layers:OTHER_LAYER",
        ".fgb": "mechdesign.geo.point_layers:OTHER_LAYER",
    },
    "roles": {
        "lines": "mechdesign.geo.geojson:read_lines",
        "people": "mechdesign.geo.people:people_of_places",
    },
}
