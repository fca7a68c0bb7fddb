"""What `maps` adds to the core. Needs: none. With: web."""

TABLES = {
    "export formats": {".compact": "mechdesign.maps.compact_design:FORMAT"},
    "kinds": {
        "mechdesign/factored": "mechdesign.maps.verify:FACTORED",
        "mechdesign/compact": "mechdesign.maps.verify:COMPACT",
    },
    "providers": {
        "factored": "mechdesign.maps.factored",
        "pool": "mechdesign.maps.pool",
        "elastic": "mechdesign.maps.elastic",
        "factors": "mechdesign.maps.dataset",
        "work": "mechdesign.maps.work_folder",
    },
    "rows": {"mechdesign/factored/1": "mechdesign.maps.dataset:FactoredMechanism"},
    "clients": {"CompactMap": "mechdesign.maps.web:region_contents"},
    "pages": {"CompactMap": "mechdesign.maps.web:region_page"},
}
