"""Distributions estimated from reports, and how far they are off."""
