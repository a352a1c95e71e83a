"""Task files: YAML, JSON and JSONL.

They are read as plain data, with the line of each field.
"""
