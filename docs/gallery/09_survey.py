"""
Shares of areas from the reports of many
========================================

Everybody reports once. A plan states the accuracy of shares beforehand; an estimate has intervals.
"""

# sphinx_gallery_thumbnail_path = "tutorials/examples/images/thumbnails/09_survey.png"

import numpy as np

import mechdesign as md

problem = md.load_problem("paris", cells=6, epsilon=0.02)
mechanism = md.baselines.geometric(problem)
rng = np.random.default_rng(0)
people = rng.choice(problem.domain.size, 2000, p=problem.prior_array)  # where they are
reports = md.sample(mechanism, people, 1, rng=0).values.ravel()  # their reports
counts = np.bincount(reports, minlength=mechanism.sizes["report"])

estimate = md.surveys.maximum_likelihood(counts, mechanism)
truth = np.bincount(people, minlength=problem.domain.size) / len(people)
apart = md.utility.kantorovich(estimate.distribution, truth, problem.domain)
print(f"the estimate is {apart.value:.0f} m from the truth (earth mover's distance)")
md.plot.mechanism(mechanism)
