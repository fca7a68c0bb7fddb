"""Positions: the claim between any two positions of an area, by spline weights over rows; integers, no solver."""
