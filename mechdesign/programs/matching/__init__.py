"""Programs that tune mechanisms to one expected distance. Nothing is solved."""
