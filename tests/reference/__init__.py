"""A second verifier, in plain Python: are the claim and the printed figures of a small file true?

It shares no code with the package and no arithmetic with NumPy: it uses integers, fractions and integer square roots,
following the statements of the docstrings. It derives the claim from metric and domain, and compares the printed
sentence with it word by word. It uses nothing of how the file was made.

A file is a dictionary {"attrs": {name: value}, "variables": {name: {"dims": [...], "dtype": "uint64", "values": nested
lists, "attrs": {...}}}}; the printed statement is the fields of a `Verification` as a dictionary.
"""

from __future__ import annotations

from reference.checking import untruths
from reference.sampled import sampled_untruths

__all__ = ["sampled_untruths", "untruths"]
