"""Reports priced inside balls of a few nats, and the lower bound that follows for any number of places."""
