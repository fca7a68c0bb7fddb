"""Least smooth bounds, by several routes to one answer. No noise."""
