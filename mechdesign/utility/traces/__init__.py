"""Days of people who stay and walk: simulated, estimated from reports, attacked. Nothing is printed."""
