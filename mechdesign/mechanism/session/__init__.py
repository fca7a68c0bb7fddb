"""Sessions: few strong reports timed by public history, a filter between them, an exact account of every window."""
