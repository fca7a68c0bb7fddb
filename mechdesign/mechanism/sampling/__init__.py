"""Reports drawn exactly from integers. Nothing here is floating point."""
