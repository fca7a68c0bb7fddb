"""Mechanisms too large for a table: whole weights and an integer metric, rows on demand. Nothing is designed."""
