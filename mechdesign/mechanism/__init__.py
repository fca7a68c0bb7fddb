"""What a mechanism is: integers, the claim they satisfy, its certificate and its file. Arrays and edges, no solver."""
