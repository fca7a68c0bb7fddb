"""`python -m mechdesign.cli` is the command line."""

from mechdesign.cli.main import main

main()
