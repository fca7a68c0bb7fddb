"""What `devicemap` adds to the core. Needs: factored. With: web."""

TABLES = {
    "export formats": {".compact": "mechdesign.devicemap.design:FORMAT"},
    "kinds": {"mechdesign/compact": "mechdesign.devicemap.verify:COMPACT"},
    "clients": {"DeviceMap": "mechdesign.devicemap.web:region_contents"},
    "pages": {"DeviceMap": "mechdesign.devicemap.web:region_page"},
}
