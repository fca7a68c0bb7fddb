"""Entries that `geo` adds to the core. Needs: none. With: factored, positions, posteriors, web."""

TABLES = {
    "commands": {
        "area": "mechdesign.geo.commands:area",
        "level": "mechdesign.geo.commands:level",
    },
    "metrics": {"streets": "mechdesign.geo.roads:Streets"},
    "roles": {
        "discs": "mechdesign.geo.disc_audit:RULE_DISCS",
        "lines": "mechdesign.geo.geojson:read_lines",
        "people": "mechdesign.geo.people:people_of_places",
        "rules": "mechdesign.geo.rules:ROUNDING_RULES",
    },
}
