"""What every floor stands on: sizes in memory, units, safe opening, checked numbers, random bits. Knows no privacy."""
