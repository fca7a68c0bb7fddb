"""Weights over eikonal kernels: factorisation, fallbacks, dictionaries, queries, diagnosis. States no program."""
