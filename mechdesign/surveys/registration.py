"""Additions of `surveys` to the core. Needs: geo. With: web."""

TABLES = {
    "frequency oracles": {
        "subset_selection": "mechdesign.surveys.frequency_estimation:subset_selection",
        "unary_encoding": "mechdesign.surveys.frequency_estimation:unary_encoding",
        "hadamard_response": "mechdesign.surveys.frequency_estimation:hadamard_response",
        "subset_exponential": "mechdesign.surveys.frequency_estimation:subset_exponential",
        "square_wave": "mechdesign.surveys.frequency_estimation:square_wave",
        "disk_area": "mechdesign.surveys.frequency_estimation:disk_area",
    },
    "roles": {"channel": "mechdesign.surveys.information:rank_and_mse"},
    "commands": {
        "plan": "mechdesign.surveys.plan_command:plan",
        "estimate": "mechdesign.surveys.estimate_command:estimate",
    },
    "objective checks": {"statistical": "mechdesign.surveys.criterion_bound:check_statistical"},
    "solvers": {"statistical": "mechdesign.surveys.solve_design:ENTRY"},
    "pages": {
        "mechdesign/estimate/1": "mechdesign.surveys.page:estimate_page",
        "mechdesign/estimate/weighted/1": "mechdesign.surveys.weighted_page:weighted_page",
    },
    "schemas of pages": {
        "mechdesign/estimate/1": "mechdesign.surveys.shares:ESTIMATE",
        "mechdesign/estimate/weighted/1": "mechdesign.surveys.weighted_schema:WEIGHTED",
    },
}
