"""Additions of `devicemap` to the core. Needs: factored. With: web."""

TABLES = {
    "export formats": {".compact": "mechdesign.devicemap.design:FORMAT"},
    "kinds": {"mechdesign/devicemap": "mechdesign.devicemap.verify:DEVICE_MAP"},
    "clients": {"DeviceMap": "mechdesign.devicemap.web:client_files"},
    "pages": {"DeviceMap": "mechdesign.devicemap.web:map_page"},
}
