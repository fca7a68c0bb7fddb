"""How many households are above an income and a debt? Two-way thresholds, all at once (paper 002, Figure 4).

python scripts/income_and_debt.py [--full] [--repetitions 10] [-o income_and_debt.csv] [--plot income_and_debt.png]

Incomes and debts are drawn from the correlated log-normal law of the paper. 36 thresholds and up to 80,000 households;
--full has the paper's 1,156 thresholds, sizes to 6.4 million and 50 repetitions (days).
"""

import itertools
import sys
from pathlib import Path

from mechdesign.closed_forms.sensitivity.query_functions import band_width

sys.path.append(str(Path(__file__).resolve().parents[1]))  # for experiments, beside this folder

from experiments.populations import incomes_and_debts
from experiments.release_claims import two_way_claims
from experiments.release_experiments import conclude, options, parsed, simulate
from experiments.release_queries import TwoWayQuery
from experiments.release_study import ReleaseStudy

INVERSES = (20_000, 12_000, 8_000)  # USD
SPAN = 12_000  # USD
FINE, COARSE = range(10_000, 1_000_001, 30_000), range(10_000, 1_000_001, 180_000)  # USD


def main() -> None:
    """Simulate every level, print and save the errors, draw them."""
    given = parsed(options(__doc__, "income_and_debt", data=False))
    paper = [400_000, 1_600_000, 6_400_000]
    sizes = paper if given.full else [5_000, 20_000, 80_000]
    people = incomes_and_debts(sizes[-1], given.seed)
    corners = list(itertools.product(FINE if given.full else COARSE, repeat=2))
    settings = {}
    for inverse in INVERSES:
        study = ReleaseStudy(
            secrets=people,
            queries=[TwoWayQuery(thresholds=corner, width=band_width(corner, 1 / inverse)) for corner in corners],
            epsilon=1 / inverse,
            sizes=sizes,
            span=SPAN,
            seed=given.seed,
        )
        settings[f"{len(corners):,} thresholds, 1/eps = {inverse:,} USD"] = study, {"epsilon_inverse": inverse}
    panels, expected = simulate("income and debt", settings, given.repetitions or (50 if given.full else 10), paper)
    conclude(panels, expected, two_way_claims(panels), given)


if __name__ == "__main__":
    main()
