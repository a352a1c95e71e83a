"""The figures: one file for each, which runs a workload and compares it with the least that could be done."""
