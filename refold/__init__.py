"""A deterministic state-machine engine for LLM agents."""
