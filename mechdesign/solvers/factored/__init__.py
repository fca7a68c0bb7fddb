"""Factored designs in blocks, on threads or a dask cluster, kept in a work folder. Proves nothing."""
