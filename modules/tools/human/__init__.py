"""Questions to people: the tools, the prompts as data, and the handlers."""
