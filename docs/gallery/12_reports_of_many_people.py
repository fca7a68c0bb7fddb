"""
Statistics from the reports of many people: Paris
=================================================

Alvim, Chatzikokolakis, Palamidessi and Pazii, "Metric-based local differential privacy for statistical applications".
Everybody reports a location once. From the reports "we then try to reconstruct the distribution [...] as well as
we can, assuming that we only know" them "and the mechanism M for noise injection".
"""

# %%
# The problem
# -----------
# The paper tunes k-ary randomized response and metric noise to one expected distance, and measures the Kantorovich
# distance from the estimated distribution to the true one. Here the grid is 10 x 10 cells of 450 m, the paper's
# 4.5 km x 4.5 km around Les Halles. The data are the 7,542 shipped check-ins, and the expected distance is 900 m.

import matplotlib.pyplot as plt
import numpy as np

import mechdesign as md

SIDE, DISTANCE = 10, 900.0
shipped = md.load_problem("paris", prior="checkins", epsilon=0.004)  # 30 x 30 cells of 150 m
checkins = np.rint(7542 * shipped.prior_array).astype(int)
counts = checkins.reshape(SIDE, 3, SIDE, 3).sum(axis=(1, 3)).ravel()
truth = counts / counts.sum()

domain = md.Domain.grid((SIDE, SIDE), cell=450.0, unit="m")
metric = md.Euclidean(epsilon=0.004, unit="m")
problem = md.DesignProblem(domain=domain, metric=metric, prior=truth, loss=md.losses.Distance())

# %%
# One expected distance is not one level
# --------------------------------------
# `match_distance` finds the epsilon of each family at 900 m; `audit` tells the level that its table truly has, in
# nats per m over all pairs.


def at_distance(family):
    return md.utility.match_distance(problem, family, DISTANCE).epsilon


mechanisms = {
    "randomized response": md.baselines.randomized_response(problem, at_distance("randomized_response")),
    "geometric, normalised": md.baselines.geometric(problem, at_distance("geometric_normalised"), border="normalised"),
    "geometric, clamped": md.baselines.geometric(problem, at_distance("geometric_clamped")),
}
for name, mechanism in mechanisms.items():
    true = md.audit(md.probabilities(mechanism).values, problem, normalise=True).effective_epsilon
    print(f"{name:22} claims {mechanism.attrs['claimed_epsilon']:.5g}, truly {true:.5f} nats per m")

# %%
# Estimates
# ---------
# Everybody reports once; maximum likelihood finds the distribution behind the reports, to a proved gap, and
# `kantorovich` how far it is from the truth, with bounds on both sides.

rng = np.random.default_rng(0)
secrets = np.repeat(np.arange(domain.size), counts)
shown = {"check-ins": truth}
for name, mechanism in mechanisms.items():
    steps = md.probabilities(mechanism).values.cumsum(axis=1)
    reports = (rng.random((len(secrets), 1)) > steps[secrets]).sum(axis=1).clip(max=domain.size - 1)
    found = md.surveys.maximum_likelihood(np.bincount(reports, minlength=domain.size), mechanism)
    apart = md.utility.kantorovich(found.distribution, truth, domain)
    shown[f"{name}:\n{apart.value:.0f} m from the truth"] = found.distribution

extent = (0, SIDE * 0.45, 0, SIDE * 0.45)  # km
figure, axes = plt.subplots(1, 4, figsize=(12.5, 3.6), layout="constrained", sharey=True)
for ax, (title, distribution) in zip(axes, shown.items(), strict=True):
    image = np.reshape(distribution, (SIDE, SIDE)).T
    seen = ax.imshow(image, origin="lower", vmin=0, vmax=truth.max(), cmap="cividis", extent=extent)
    ax.set(title=title, xlabel="km east")
axes[0].set(ylabel="km north")
figure.colorbar(seen, ax=axes, label="share of the people", extend="max", shrink=0.8)

# %%
# Differences
# -----------
# * In the paper randomized response is less accurate at one expected distance. On these check-ins it is not, with the
#   paper's estimate by maximum likelihood. It mostly reports the true cell, at many times the level of the others, as
#   the figures above show. Equal distance compares mechanisms that are not equally private.
# * Dividing rows by their sums, the paper's geometric mechanism, breaks the claim. Moving outside mass to the
#   border does not break it.
# * On the paper's 30 x 30 cells, with 20 repetitions and growing samples: :doc:`/results/paris`. There is also a
#   mechanism designed for the estimate, `md.surveys.StatisticalDesign`.
