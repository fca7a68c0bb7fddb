"""What theory already knows: mechanisms, laws of noise, sensitivity. Solves nothing."""
