"""Programs about the distribution of secrets: likelihood, design, information. Nothing is solved."""
