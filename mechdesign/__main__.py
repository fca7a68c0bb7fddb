"""`python -m mechdesign` is the command line."""

from mechdesign.cli.main import main

main()
