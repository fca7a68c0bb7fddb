"""Additions of `positions` to the core. Needs: none. With: none."""

TABLES = {
    "baselines between positions": {"spline_laplace": "mechdesign.positions.spline:spline_laplace"},
    "roles": {
        "positions": "mechdesign.positions.roles:SPLINE_CLAIMS",
        "protection of positions": "mechdesign.positions.roles:SPLINE_CLAIMS",
    },
    "objective checks": {"positions": "mechdesign.positions.solve:check_positions"},
    "table schema parts": {"positions": "mechdesign.positions.schema:POSITIONS"},
    "solvers": {"positions": "mechdesign.positions.solve:ENTRY"},
}
