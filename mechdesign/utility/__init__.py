"""What a mechanism is worth: expected losses and Bayes remapping; what its reports tell about many people."""
