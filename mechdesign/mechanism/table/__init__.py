"""Mechanisms as one table of integers: its Dataset, its certificate, its repair. Nothing is drawn."""
