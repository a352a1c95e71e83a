"""Agents as tools of other agents.

Each run of a sub-agent is a child run with its own trace and a share of the budget.
"""
