"""The chat with a model: messages and their parts, tool calls, usage, and how a long one is shortened."""
