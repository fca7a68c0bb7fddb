"""A factored mechanism of a map in 5 bytes a place: what a reader computes from them in whole numbers. Nothing designs."""
