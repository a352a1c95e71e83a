"""The figures: each file compares a workload with a lower bound."""
