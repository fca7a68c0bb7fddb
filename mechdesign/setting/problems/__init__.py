"""Design problems, and where they come from: files, words, areas, releases. No mechanism."""
