"""What `factored` adds to the core. Needs: none. With: none."""

TABLES = {
    "kinds": {"mechdesign/factored": "mechdesign.factored.verify:FACTORED"},
    "providers": {
        "factored": "mechdesign.factored.design",
        "pool": "mechdesign.factored.pool",
        "factors": "mechdesign.factored.dataset",
        "work": "mechdesign.factored.work_folder",
    },
    "rows": {"mechdesign/factored/1": "mechdesign.factored.dataset:FactoredMechanism"},
}
