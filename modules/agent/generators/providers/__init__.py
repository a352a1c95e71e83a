"""Real models: litellm, the answers of providers, their errors, and retries."""
