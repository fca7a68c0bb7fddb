"""What solvers share: HiGHS, exact pricing, the tree simplex, threads, progress. Knows no program."""
