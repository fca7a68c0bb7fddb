"""Files of anybody, read into domains, rasters, streets and tables, one format a file. No privacy."""
