"""What `geo` adds to the core. Needs: none. With: maps, positions, web."""

TABLES = {
    "commands": {
        "area": "mechdesign.geo.commands:area",
        "level": "mechdesign.geo.commands:level",
    },
    "metrics": {"streets": "mechdesign.geo.roads:Streets"},
    "providers": {
        "lines": "mechdesign.geo.geojson",
        "discs": "mechdesign.geo.disc_audit",
        "people": "mechdesign.geo.people",
        "rules": "mechdesign.geo.rules",
    },
}
