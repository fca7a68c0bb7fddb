"""
Ask a question with named answers
=================================

Every respondent randomizes the answer to a question. Here is the mechanism
as a picture, and the shares that its reports give.
"""

# sphinx_gallery_thumbnail_path = "tutorials/examples/images/thumbnails/18_named_answers.png"

import numpy as np

import mechdesign as md

domain = md.Domain.classes(["yes", "no", "don't know"])
prior = {"yes": 0.5, "no": 0.3, "don't know": 0.2}
problem = md.DesignProblem(domain, md.Discrete(1.1), prior, md.losses.ZeroOne(), name="a question")
mechanism = md.solve(problem)
md.plot.mechanism(mechanism)

# %%
# 2,000 people answer, of whom 60 % think yes. The mechanism sees one truth
# each, and nobody sees more than the reports.

rng = np.random.default_rng(1)
truth = rng.choice(3, size=2000, p=[0.6, 0.25, 0.15])
reports = md.Sampler(mechanism).sample(truth, rng=rng).to_numpy().ravel()
counts = np.bincount(reports, minlength=3)
areas = md.geo.read_areas("classes", domain)
estimate = md.surveys.estimate_shares([mechanism], [counts], areas)
for k, label in enumerate(domain.labels):
    low, share, high = (100 * float(estimate[name][k]) for name in ("low", "share", "high"))
    print(f"{label:10} {share:.0f} %, from {low:.0f} to {high:.0f} %")
