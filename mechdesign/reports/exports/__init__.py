"""Tables for other programs: what is written (content), and one file for each format."""

KINDS = (".csv", ".json", ".parquet")
