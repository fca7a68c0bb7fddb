"""Files handed over with an export: a verifier and a sampler. Each stands alone and imports nothing of this package."""
