"""Entries that `posteriors` adds to the core. Needs: none. With: pictures."""

TABLES = {
    "command options": {
        "area": "mechdesign.posteriors.options:AreaOptions",
        "audit": "mechdesign.posteriors.options:AuditOptions",
        "level": "mechdesign.posteriors.options:LevelOptions",
        "solve": "mechdesign.posteriors.options:SolveOptions",
        "verify": "mechdesign.posteriors.options:VerifyOptions",
    },
    "constraints": {
        "posterior-cap": "mechdesign.posteriors.limits:PosteriorCap",
        "posterior-lift": "mechdesign.posteriors.limits:PosteriorLift",
    },
    "limit solvers": {
        "posterior-cap": "mechdesign.posteriors.solve:PosteriorLimits",
        "posterior-lift": "mechdesign.posteriors.solve:PosteriorLimits",
    },
    "table schema parts": {"posteriors": "mechdesign.posteriors.schema:CAP_ROWS"},
}
