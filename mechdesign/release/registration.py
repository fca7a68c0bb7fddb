"""Additions of `release` to the core. Needs: none. With: none."""

TABLES: dict[str, dict[str, str]] = {}
