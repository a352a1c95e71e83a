"""The web tools: fetch a page, extract its text, and search."""
