"""The optimal program over the cone of a metric, and its relatives. Nothing is solved."""
