"""Tables for other programs, one format a file. Verified first; nothing unproved is written."""
