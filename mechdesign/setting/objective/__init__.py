"""How a report is judged: losses, priors, queries. No privacy."""
