"""Programs over eikonal kernels: weights, dictionaries, queries; where weights cannot exist. Nothing is solved."""
