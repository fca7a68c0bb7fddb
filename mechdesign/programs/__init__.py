"""What is asked: one constrained program a file, stated in cvxpy and assembled for the direct solver."""
