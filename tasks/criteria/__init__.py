"""Success criteria: evaluators by name, and the verdicts on an ended run."""
