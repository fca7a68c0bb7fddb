"""What theory already knows: one mechanism a file, each with `mechanism(problem, ...)`.

A closed form becomes integers unrepaired; its file claims the smallest multiple of the problem's metric that holds.
"""
