"""The schema of a factored mechanism."""

from mechdesign.mechanism.schema import MECHANISM_ATTRIBUTES, Schema, VariableSpec

FACTORED = "mechdesign/factored/2"

FACTORS = Schema(
    name=FACTORED,
    own_variables={
        "weight": VariableSpec(dtype="uint32", dims=("column",)),
        "target": VariableSpec(dtype="int64", dims=("column",), places="secret"),
        "remap": VariableSpec(dtype="int64", dims=("column",), places="secret", optional=True),
        "first_generator": VariableSpec(dtype="int64", dims=("column",), places="generator", optional=True),
        "generator_place": VariableSpec(dtype="int64", dims=("generator",), places="place", optional=True),
        "generator_offset": VariableSpec(dtype="uint16", dims=("generator",), optional=True),
        "inner": VariableSpec(dtype="int64", dims=("secret",), places="place"),
        "edge_tail": VariableSpec(dtype="int64", dims=("edge",), places="place"),
        "edge_head": VariableSpec(dtype="int64", dims=("edge",), places="place"),
        "edge_units": VariableSpec(dtype="uint16", dims=("edge",)),
        "row_sum": VariableSpec(dtype="uint64", dims=("secret", "word")),
        "row_loss": VariableSpec(dtype="float64", dims=("secret",)),
        "prior": VariableSpec(dtype="float64", dims=("secret",)),
        "level": VariableSpec(dtype="float64", dims=("secret",), optional=True),
        "excess": VariableSpec(dtype="float64", dims=("secret",), optional=True),
        "ring": VariableSpec(dtype="int64", dims=("secret",), optional=True),
        "dual": VariableSpec(dtype="float64", dims=("secret",), optional=True),
        "tree": VariableSpec(dtype="uint8", dims=("coded",), optional=True),
        "tree_size": VariableSpec(dtype="uint32", dims=("secret",), optional=True),
        "claim_tail": VariableSpec(dtype="int64", dims=("claimed",), places="secret", optional=True),
        "claim_head": VariableSpec(dtype="int64", dims=("claimed",), places="secret", optional=True),
        "claim_length": VariableSpec(dtype="float64", dims=("claimed",), optional=True),
    },
    places=("secret", "place"),
    own_sizes={"word": 2},
    attributes=MECHANISM_ATTRIBUTES | {"step": int, "cap": int},
    optional={
        "remapped_loss": float,
        "stopped": str,
        "lower_bound": float,
        "bound_reach": float,
        "bound_core": float,
    },
)
