"""What `geo` adds to the core. Needs: none. With: factored, positions, web."""

TABLES = {
    "commands": {
        "area": "mechdesign.geo.commands:area",
        "level": "mechdesign.geo.commands:level",
    },
    "metrics": {"streets": "mechdesign.geo.roads:Streets"},
    "providers": {
        "lines": "mechdesign.geo.geojson",
        "discs": "mechdesign.geo.disc_audit",
        "elastic": "mechdesign.geo.elastic",
        "people": "mechdesign.geo.people",
        "rules": "mechdesign.geo.rules",
    },
}
