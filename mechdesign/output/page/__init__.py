"""One self-contained HTML file of a mechanism or a sweep, which proves its own table in the browser."""
