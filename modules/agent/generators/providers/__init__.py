"""Real models: litellm, the answers of providers, their errors, retries and fallbacks."""
