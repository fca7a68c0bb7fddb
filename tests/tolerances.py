"""Tolerances of the tests, each with its reason; all are one-sided where the claim is."""

# Lengths are rounded down by at most 2^-43 relative, and e^d is designed with a margin of 2^-40.
DESIGN_MARGIN = 1e-9

# HiGHS is asked for 1e-9 feasibility; a certified pair [lower_bound, loss] this wide counts as one number.
SOLVED = 1e-7

# cvxpy hands the program to another solver at its default tolerance.
ORACLE = 1e-6

# Independent values are printed with ten digits.
PRINTED = 1e-7

# Dense factorisations of kernels with condition number below 10^3.
LINEAR_ALGEBRA = 1e-12

# A limit below the attainable one by this share is neither met nor proved impossible in double precision.
UNRESOLVED = 1e-15

# The block interior-point method inverts dense blocks explicitly: ill-scaled problems it resolves to a few 1e-5.
BLOCKS = 1e-4

# The same sum in another order.
REORDERED = 1e-13

# The relative gap that Kantorovich distances are asked for.
CERTIFIED = 1e-9

# Relative: what a closed form loses for the room of its integers, a share of `repair.spare`: 3e-6 on the cases, most of
# it where edges are short.
SPARED = 1e-5

# Relative: the plane of a map lengthens no distance by more (problem/plane.py refuses wider areas).
ON_THE_GROUND = 1e-3

# Errors of designs that a research program found, printed to the metre at a kilometre.
NOTED = 1e-3

# What the audit of a table of doubles at the claim may show, as a multiple of the claim: logarithms are rounded.
UP_TO_ROUNDING = 1 + 2.0**-40

# Of the loss of the best constant report: gaps are not measured finer, whose losses the integers do not resolve.
RESOLVED = 1e-9
