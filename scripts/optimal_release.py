"""The optimal private answer to "is the income above T?" beside smooth sensitivity and its baselines.

python scripts/optimal_release.py [--thresholds 10000 100000 500000] [--inverse 12000] [--cells 120] [--outputs 41]
                                  [-o optimal_release.csv]

All on one grid of incomes and one of answers, all certified: expected squared error of one answer, its lower bound, the
true epsilon. Then the error of the mean of many users, from the population of the prior and from one whose incomes are
20 % higher: what is best for one answer need not be best for the mean of a million.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
import pandas as pd

from mechdesign.closed_forms.sensitivity.query_functions import band_width
from mechdesign.setting.objective.priors import proportional
from mechdesign.setting.problems.problem_files import read_problem_file

sys.path.append(str(Path(__file__).resolve().parents[1]))  # for experiments, beside this folder

from experiments.release_comparison import release_mechanisms, release_rows
from experiments.release_queries import ThresholdQuery
from experiments.releases import print_comparison
from experiments.studies import write_study

USERS = (100, 10_000, 1_000_000)
RAISED = 1.2
NOTES = f"""error, lower bound, means: squared answers; true epsilon: nats per USD; multiple: of the claim.
The error of one answer is not that of a mean: mean of n = error / n + (1 - 1/n) bias^2. The outputs end, which makes
unbiased noise biased; continuous: the mean of {USERS[-1]:,} without a grid of outputs.
raised: the mean of {USERS[-1]:,} users whose incomes are {RAISED} times those of the prior, on the grid of outputs."""


def main() -> None:
    """Design, compare, print and save the figures for every threshold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--thresholds", type=float, nargs="+", default=[10_000.0, 100_000.0, 500_000.0])
    parser.add_argument("--inverse", type=float, default=12_000.0)
    parser.add_argument("--cells", type=int, default=120)
    parser.add_argument("--outputs", type=int, default=41)
    parser.add_argument("-o", "--output", type=Path, default=Path("optimal_release.csv"))
    given = parser.parse_args()
    income, tables = read_problem_file("income"), []
    parameters = {"epsilon_inverse": given.inverse, "cells": given.cells, "outputs": given.outputs}
    for threshold in given.thresholds:
        problem = income.build(threshold=threshold, **parameters)
        query = ThresholdQuery(threshold=threshold, width=band_width(threshold, 1 / given.inverse))
        made = release_mechanisms(problem, query, span=given.inverse)
        ends = np.append(np.arange(given.cells) * problem.domain.cell[0], np.inf) / RAISED
        raised = proportional(income.module.income_mass(ends[:-1], ends[1:]))
        table = release_rows(made, problem, query, span=given.inverse, users=USERS)
        other = release_rows(made, problem, query, span=given.inverse, users=USERS[-1:], population=raised)
        table["raised"] = other[f"mean_of_{USERS[-1]}"]
        print(f"\nT = {threshold:,.0f} USD, 1/eps = {given.inverse:,.0f} USD, band {query.width:,.0f} USD")
        print_comparison(table)
        tables.append(table.assign(threshold=threshold, epsilon_inverse=given.inverse))
    print(NOTES)
    print(f"wrote {write_study(pd.concat(tables, ignore_index=True), given.output, overwrite=True)}")


if __name__ == "__main__":
    main()
