"""How programs are solved: the same themes. Knows no paper; its word is no evidence."""
