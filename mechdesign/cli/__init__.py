"""The command line, one command a file: a thin face of the Python API. Decides nothing."""
