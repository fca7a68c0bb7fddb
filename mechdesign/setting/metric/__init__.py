"""Privacy metrics and the levels and shortest paths that they are made of. No places, no losses."""
