"""Additions of `factored` to the core. Needs: none. With: none."""

TABLES = {
    "kinds": {"mechdesign/factored": "mechdesign.factored.verify:FACTORED"},
    "roles": {
        "factored": "mechdesign.factored.design:FACTORED_FORM",
        "pool": "mechdesign.factored.pool:COLUMN_POOL",
        "factors": "mechdesign.factored.dataset:FACTOR_READER",
    },
    "schemas": {"mechdesign/factored/2": "mechdesign.factored.schema:FACTORS"},
    "rows": {"mechdesign/factored/2": "mechdesign.factored.mechanism:FactoredMechanism"},
}
