"""Expected loss, remap, an adversary's error, retrieval. Nothing is printed."""
