"""Comparisons and sweeps as rows. Nothing is printed here."""
