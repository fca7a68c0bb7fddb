"""
A budget for a day
==================

k reports cost k times the nats. A budget pays on the disk before it reports, repeats a report at no cost, and refuses
beyond its limit.
"""

import tempfile
from pathlib import Path

import mechdesign as md

sampler = md.Sampler(md.solve(md.load_problem("discrete")))
with tempfile.TemporaryDirectory() as folder:
    budget = md.sessions.Budget.create(Path(folder) / "ledger.json", limit=2)
    for place in (3, 3, 5, 6):
        try:
            budget.report(sampler, place)
            print(f"place {place}: reported")
        except md.errors.BudgetError as refused:
            print(f"place {place}: {refused}")
