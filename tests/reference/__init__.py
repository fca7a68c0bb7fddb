"""A second verifier, in plain Python: is a small file true to the claim and the figures that are printed of it?

It shares no code with the package and no arithmetic with NumPy: integers, fractions and integer square roots, the
statements of the docstrings taken up again. It puts the claim together from metric and domain as a
mathematician would, compares the printed sentence with it word by word, and asks nothing of how the file came about.

A file is a dictionary {"attrs": {name: value}, "variables": {name: {"dims": [...], "dtype": "uint64", "values": nested
lists, "attrs": {...}}}}; the printed statement is the fields of a `Verification` as a dictionary.
"""

from __future__ import annotations

from reference.checking import untruths
from reference.sampled import sampled_untruths

__all__ = ["sampled_untruths", "untruths"]
