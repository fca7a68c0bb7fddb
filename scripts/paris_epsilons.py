"""The three epsilons of paper 001 for 450 m in Paris beside ours, and which priors would explain them.

python scripts/paris_epsilons.py
"""

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Column, Table

from mechdesign.programs.matching.explaining_prior import ExplainingPrior
from mechdesign.setting.problems.problem_files import read_problem_file
from mechdesign.solvers.matching.explaining_prior import distance_range, explain
from mechdesign.solvers.matching.matched_distance import match_distance

DISTANCE = 450.0  # m
BORDERS = ("normalised", "clamped")


def main() -> None:
    """Print the epsilons with their deviation, then the priors that explain them."""
    console, file = Console(width=118), read_problem_file("paris")
    printed = file.module.published()
    names = ("mechanism", "unit", "paper 001", "uniform prior", "deviation", "check-ins", "deviation")
    table = Table(*(Column(name, justify="right") for name in names), box=SIMPLE_HEAD)
    problems = [file.build(prior=prior, distance=DISTANCE) for prior in ("uniform", "checkins")]
    for kind, paper in printed.items():
        for family in [kind] if kind == "randomized_response" else [f"{kind}_{border}" for border in BORDERS]:
            found = [match_distance(problem, family, DISTANCE) for problem in problems]
            figures = [text for m in found for text in (f"{m.epsilon:.9g}", f"{m.epsilon / paper - 1:+.2%}")]
            table.add_row(family, found[0].unit, f"{paper:.9g}", *figures)
    console.print(table)

    flat = ("randomized_response", printed["randomized_response"])
    for border in BORDERS:
        reported = [flat, (f"geometric_{border}", printed["geometric"])]
        program = ExplainingPrior(problem=problems[0], reported=reported, distance=DISTANCE)
        third = f"laplacian_{border}"
        low, high = distance_range(program, third, printed["laplacian"])
        verdict = "within reach" if low <= DISTANCE <= high else "infeasible for every prior"
        console.print(
            f"- randomized response and geometric_{border}: explained by a prior at chi-square distance "
            f"{explain(program).chi_square:.4f} from uniform. Under all priors that explain them {third} at "
            f"{printed['laplacian']} has an expected distance in [{low:.2f}, {high:.2f}] m: {verdict}.",
            highlight=False,
        )


if __name__ == "__main__":
    main()
