"""Tables for other programs, one format a file. Verified first."""
