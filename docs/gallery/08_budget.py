"""
A budget for a day
==================

k reports cost k times the nats. A budget pays on the disk before it reports, repeats a report at no cost, and refuses
beyond its limit.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt

import mechdesign as md

LIMIT = 2  # reports
sampler = md.Sampler(md.solve(md.load_problem("discrete")))
places, spent = (3, 3, 5, 6), []
with tempfile.TemporaryDirectory() as folder:
    budget = md.sessions.Budget.create(Path(folder) / "ledger.json", limit=LIMIT)
    for place in places:
        try:
            budget.report(sampler, place)
            print(f"place {place}: reported")
        except md.errors.BudgetError as refused:
            print(f"place {place}: {refused}")
        spent.append(float(budget.spent))

# %%
# The second report of place 3 is the first one again. Place 6 would exceed the limit.

figure, axes = plt.subplots(figsize=(5, 3), layout="constrained")
axes.bar([f"place {place}\n{k}." for k, place in enumerate(places, start=1)], spent)
axes.axhline(LIMIT, color="black", ls=":", label="limit")
axes.set(ylabel="spent, in reports", ylim=(0, 1.2 * LIMIT))
axes.legend(frameon=False, loc="upper left")
