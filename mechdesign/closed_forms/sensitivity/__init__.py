"""Functions of a location, and the smooth sensitivity that paper 002 gives them. No noise."""
