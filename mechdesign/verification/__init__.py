"""Proof and refusal: of our files, and of anyone's table. Prints nothing, solves nothing."""
