"""What reports cost together: a ledger on disk, paid before a report is returned. Draws nothing itself."""
