"""
Constraints of your own
=======================

`Constrained` adds inequalities to the optimal program: here no report may be more likely than 10 %, an error in the
worst cell is capped, and reports have a least entropy. The lower bound is that of the constrained program. Where an
inequality is convex and not linear, as the entropy, tangents of it stand for it. A file cannot hold a function, so
`verify` certifies the privacy of that mechanism and says that its bound was not checked.
"""

# sphinx_gallery_thumbnail_path = "tutorials/examples/images/thumbnails/04_constraints.png"

import cvxpy as cp

import mechdesign as md

problem = md.load_problem("philadelphia", cells=6, extent=10.0)
free = md.solve(problem)
capped = md.solve(md.programs.Constrained(problem, constraints=[md.programs.ReportCap(cap=0.1)]))
bounded = md.solve(md.programs.Bounded(problem, worst_loss=12.0))


def spread(table):
    """An entropy of 3.3 nats; the optimal mechanism has 3.15."""
    return [cp.sum(cp.entr(problem.prior_array @ table)) >= 3.3]


varied = md.solve(md.programs.Constrained(problem, constraints=[spread]))
designs = {
    "optimal": free,
    "no report above 10 %": capped,
    "worst cell at most 12": bounded,
    "entropy of 3.3 nats": varied,
}
for name, mechanism in designs.items():
    attrs = mechanism.attrs
    print(f"{name:22} expected loss {attrs['expected_loss']:.3f}, at least {attrs['lower_bound']:.3f}")
md.plot.mechanism(capped)
