"""Laws of noise on the line and in the plane, their radii and what floating point costs. No tables."""
