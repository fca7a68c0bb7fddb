"""
One private answer: is this income above a threshold?
=====================================================

Liang and Yi, "Smooth Sensitivity for Geo-Privacy": "each user holds a private value in some metric space", and an
analyst asks for a number f(x). Noise for the largest slope of f is too much where f is flat: "there is potential to
do much better" with noise "tailored to the hardness of the given instance".
"""

# %%
# The problem
# -----------
# f is a soft threshold at 500,000 USD, private at 1 nat per 12,000 USD. S(x) is the least bound that is at least the
# steepest chord of f from x and changes by at most a factor e^{gamma d} over a distance d.

import matplotlib.pyplot as plt

import mechdesign as md

queries, smooth, laws = md.release.query_functions, md.release.smooth_sensitivity, md.release.laws

threshold, epsilon = 500_000.0, 1 / 12_000
width = queries.band_width(threshold, epsilon)
law = laws.StudentT(3)  # its standard deviation is the root of 3
gamma = epsilon / 9  # where the tight constant of this law has the least standard deviation
problem = md.load_problem("income", threshold=threshold, cells=60, outputs=21)
x = problem.domain.points[:, 0]
f = queries.threshold(x, threshold, width)
S = smooth.threshold(x, threshold, width, gamma)

figure, (above, below) = plt.subplots(2, 1, figsize=(7, 5), sharex=True, layout="constrained")
above.plot(x / 1e3, f)
above.set(ylabel="answer f(x)")
for tight, label in [(False, "constants of the paper"), (True, "tight constants")]:
    below.semilogy(x / 1e3, 3**0.5 * S / law.eta(epsilon, gamma, tight=tight), label=f"smooth, {label}")
below.axhline(2**0.5 / (epsilon * width), color="black", ls=":", label="global Lipschitz constant")
below.set(xlabel="income, thousand USD", ylabel="standard deviation")
figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=8)

# %%
# Releasing an answer on a grid
# -----------------------------
# Continuous noise is for simulations: on an output grid the same mechanism is a table that is certified in whole
# numbers. There the best table can be asked for, with a bound that no other is below.

baseline = md.release.release_mechanism(problem, f, S, law=law, gamma=gamma)
optimal = md.solve(problem)
for name, mechanism in [("smooth sensitivity", baseline), ("optimal", optimal)]:
    share = mechanism.attrs["ratio"]
    print(f"{name:20} expected squared error {mechanism.attrs['expected_loss']:.3g}, {share:.2f} of the claim")
print(f"{'lower bound':20} {optimal.attrs['lower_bound']:27.3g}")

# %%
# Where they differ
# -----------------
# * The constants here are jointly tight: T_3 with gamma = eps / 9 has a standard deviation of 2.3238 S / eps, the
#   paper's constants give 3 S / eps.
# * The paper has no optimal release: it judges by the mean over many users, for which unbiased noise is right. One
#   answer of one user is better served by the optimum; its bias stays however many answer.
# * For kernel densities the published formula follows the slope of f, not its steepest chord, and is too small:
#   :doc:`/how-to/number` has both figures.
