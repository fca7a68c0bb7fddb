"""What a command prints. Computes no figure of its own."""
