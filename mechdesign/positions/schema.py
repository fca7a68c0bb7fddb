"""The variables and attributes that the schema of a table has for a claim between positions."""

from mechdesign.mechanism.schema import SchemaPart, VariableSpec

# Meanings: patches.py.
POSITIONS = SchemaPart(
    variables={
        "around_row": VariableSpec(dtype="int64", dims=("secret", "around"), optional=True, places="secret"),
        "corner_level": VariableSpec(dtype="float64", dims=("secret", "corner"), optional=True),
        "quarter_level": VariableSpec(dtype="float64", dims=("secret", "quarter_corner"), optional=True),
        # Multipliers of any_lower_bound: any_bound.py.
        "any_multiplier": VariableSpec(dtype="float64", dims=("any_pair",), optional=True),
    },
    sizes={"around": 9, "corner": 4, "quarter_corner": 16},
    attributes={"position_rule": str, "position_claim": str, "any_lower_bound": float, "any_squares": int},
)
