"""Files of mechanisms, read as data from anybody. No claim is judged here."""
