"""What a mechanism is worth: expected losses and Bayes remapping."""
