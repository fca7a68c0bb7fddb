"""Programs: designs private between any two positions of an area, not between cell centres alone."""
