"""Adds `pictures` to the core. Needs: none. With: none."""

TABLES = {
    "exporters": {
        ".png": "mechdesign.pictures.commands:PICTURE",
        ".pdf": "mechdesign.pictures.commands:PICTURE",
        ".svg": "mechdesign.pictures.commands:PICTURE",
    },
    "roles": {"picture": "mechdesign.pictures.plot:PICTURES"},
}
