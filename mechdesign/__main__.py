"""`python -m mechdesign` is the command line."""

from mechdesign.cli import main

main()
