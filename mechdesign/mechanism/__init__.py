"""What a mechanism is: an integer table with a claim, its certificate, its repair and its storage. No solver here."""
