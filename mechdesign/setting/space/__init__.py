"""Domains and where they lie: grids, lattices, areas on Earth, planes, rasters. No privacy."""
