"""A factored mechanism of a map in 5 bytes a place, and what follows from them in whole numbers. Nothing designs."""
