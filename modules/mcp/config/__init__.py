"""Connections to servers: commands, URLs, files, variables and secrets.

The files have the form of `.mcp.json`.
"""
