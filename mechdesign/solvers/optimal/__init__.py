"""The optimal program: restricted programs, aggregation, block interior point, near pairs. States no program."""
