"""What is protected, and how a report is judged: domain, privacy level, metric, prior, loss, problem."""
