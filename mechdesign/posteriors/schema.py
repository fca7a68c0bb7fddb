"""Variables of limits on posteriors in mechanism files: which rows the last multipliers belong to."""

from mechdesign.mechanism.schema import SchemaPart, VariableSpec

# | variable | dims | meaning |
# |---|---|---|
# | cap_report | cap_row | the report of the row |
# | cap_disc | cap_row | the number of its set, counted through all limits and priors (`first_numbers` in rows.py) |
# | cap_cells | cap_row, secret | by area alone: the share of every cell in the sets of the row |
CAP_ROWS = SchemaPart(
    variables={
        "cap_report": VariableSpec(dtype="int64", dims=("cap_row",), places="report", optional=True),
        "cap_disc": VariableSpec(dtype="int64", dims=("cap_row",), optional=True),
        "cap_cells": VariableSpec(dtype="float64", dims=("cap_row", "secret"), optional=True),
    }
)
