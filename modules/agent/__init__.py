"""The Agent: models, tools, hooks and events as one module on the engine."""
