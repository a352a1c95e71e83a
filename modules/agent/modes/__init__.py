"""Tool modes: how tools are told to a model, how its calls are read, and how their results go back."""
