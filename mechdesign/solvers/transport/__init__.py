"""Kantorovich distances with a certificate: network simplex over priced columns. No estimates."""
