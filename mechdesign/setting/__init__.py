"""What is protected, and how a report is judged: space, metric, objective, problem, and their readers. No mechanism."""
