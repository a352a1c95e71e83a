"""Toys: small modules, strategies and agents that more than one test file runs."""
