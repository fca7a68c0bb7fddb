"""Distributions estimated from reports, and how far they are off. Nothing is printed."""
