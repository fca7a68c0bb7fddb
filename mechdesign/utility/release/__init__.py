"""The error of released numbers and of their means."""
