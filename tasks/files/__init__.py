"""Task files: YAML, JSON and JSONL, with a line per field."""
