"""Agents as tools of other agents: each of their runs is a child run, with a trace and a share of the budget."""
