"""
Constraints of your own
=======================

`Constrained` adds inequalities to the optimal program: here no report may be more likely than 10 %, and an error in the
worst cell is capped. The certificate and the bound are those of the constrained program.
"""

import mechdesign as md

problem = md.load_problem("philadelphia", cells=6, extent=10.0)
free = md.solve(problem)
capped = md.solve(md.programs.Constrained(problem, constraints=[md.programs.ReportCap(cap=0.1)]))
bounded = md.solve(md.programs.Bounded(problem, worst_loss=12.0))
for name, mechanism in [("optimal", free), ("no report above 10 %", capped), ("worst cell at most 12", bounded)]:
    print(f"{name:22} expected loss {mechanism.attrs['expected_loss']:.3f}")
md.plot.mechanism(capped)
