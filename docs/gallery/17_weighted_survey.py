"""
Survey weights, domains and missing answers
===========================================

An office asked city people half as often, and some did not answer. Weights undo the first; a class shows the second.
"""

# sphinx_gallery_thumbnail_path = "tutorials/examples/images/thumbnails/17_weighted_survey.png"

import json

import numpy as np
from matplotlib.figure import Figure

import mechdesign as md

mechanism = md.baselines.exponential(md.load_problem("line", cells=8, epsilon=2.0))
areas = md.geo.Partition(names=("city", "country"), label=np.array([0, 0, 0, 0, 1, 1, 1, 1]))

# %%
# The truth: 50 % live in the city, where a person is asked with half the probability.

rng = np.random.default_rng(0)
homes = rng.integers(0, 8, 20_000)
asked = rng.random(20_000) < np.where(homes < 4, 0.1, 0.2)
homes, age = homes[asked], np.where(rng.random(asked.sum()) < 0.4, "young", "old")
reports = md.sample(mechanism, homes, rng=1).values.ravel()
reports[rng.random(len(reports)) < 0.1] = -1  # no answer
weights = np.where(homes < 4, 2.0, 1.0)

for name, given in {"without weights": None, "with weights": weights}.items():
    shares = md.surveys.weighted_shares(mechanism, reports, areas, weights=given)
    low, high = (100 * float(shares[end][0, 0]) for end in ("low", "high"))
    print(f"{name}: {low:.1f} to {high:.1f} % in the city, design effect {shares['design_effect'].item():.2f}")

# %%
# One estimate for each age, with missing answers as a class. All intervals hold at once.

shares = md.surveys.weighted_shares(
    mechanism, reports, areas, weights=weights, by=age.tolist(), missing="class", population=20_000, simultaneous=True
)
names = {name: json.loads(shares.attrs[name + "s"]) for name in ("domain", "area")}
columns = ["share", "low", "high", "difference", "difference_low", "difference_high"]
shares[columns].assign_coords(names).to_dataframe().round(3)

# %%
# The intervals of the last estimate as a picture.


def draw() -> Figure:
    """Share and interval of each domain and area."""
    figure = Figure(figsize=(6, 2.6), layout="constrained")
    axes = figure.add_subplot()
    share, low, high = (100 * shares[name].values.ravel() for name in ("share", "low", "high"))
    axes.errorbar(share, range(len(share)), xerr=[share - low, high - share], fmt="o", capsize=4)
    labels = [f"{domain}, {area}" for domain in names["domain"] for area in names["area"]]
    axes.set_yticks(range(len(share)), labels)
    axes.set(xlabel="share (%)", xlim=(0, 100), title="Shares of areas with intervals")
    return figure


draw()
