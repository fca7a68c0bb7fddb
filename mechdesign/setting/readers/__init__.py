"""Files of anybody, read into domains, rasters, streets and tables. One format a file."""
