"""How many households earn more than T? Smooth sensitivity and its baselines on incomes (paper 002, Figures 3 and 8).

python scripts/income_threshold.py [--full] [--data FILE [--value HHINCOME] [--weight HHWT]] [--repetitions 20]
                                   [-o income_threshold.csv] [--plot income_threshold.png]

All thresholds and levels of the paper; --full has its sizes and repetitions (half an hour). Without FILE incomes are
drawn from the paper's log-normal fit; with it from the records by weight, 9999998 and 9999999 being no incomes.
"""

import sys
from pathlib import Path

from mechdesign.closed_forms.sensitivity.query_functions import band_width
from mechdesign.setting.readers.microdata import read_microdata

sys.path.append(str(Path(__file__).resolve().parents[1]))  # for experiments, beside this folder

from experiments.populations import incomes
from experiments.release_claims import income_claims
from experiments.release_experiments import conclude, options, parsed, simulate
from experiments.release_queries import ThresholdQuery
from experiments.release_study import ReleaseStudy

GRID = {  # threshold: distances 1 / eps, the middle one also the span of local privacy, all in USD
    10_000: (2_000, 1_200, 800),
    100_000: (20_000, 12_000, 8_000),
    500_000: (40_000, 24_000, 16_000),
    1_000_000: (80_000, 48_000, 32_000),
}
NO_INCOME = (9_999_998, 9_999_999)


def main() -> None:
    """Simulate every setting, print and save the errors, draw them."""
    parser = options(__doc__, "income_threshold")
    parser.add_argument("--value", default="HHINCOME")
    parser.add_argument("--weight", default="HHWT")
    given = parsed(parser)
    paper = [400_000 * 2**k for k in range(5)]
    sizes = paper if given.full else [25_000 * 2**k for k in range(5)]
    if given.data is None:
        people = incomes(sizes[-1], given.seed)
    else:
        records = read_microdata(given.data, value=given.value, weight=given.weight, missing=NO_INCOME)
        people = records.sample(sizes[-1], given.seed)
    settings = {}
    for threshold, inverses in GRID.items():
        for inverse in inverses:
            query = ThresholdQuery(threshold=threshold, width=band_width(threshold, 1 / inverse))
            settings[f"T = {threshold:,} USD, 1/eps = {inverse:,} USD"] = (
                ReleaseStudy(
                    secrets=people, queries=[query], epsilon=1 / inverse, sizes=sizes, span=inverses[1], seed=given.seed
                ),
                {"threshold": threshold, "epsilon_inverse": inverse},
            )
    repetitions = given.repetitions or (100 if given.full else 20)
    panels, expected = simulate("income thresholds", settings, repetitions, paper)
    conclude(panels, expected, income_claims(expected), given)


if __name__ == "__main__":
    main()
