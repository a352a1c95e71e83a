"""The configuration of servers: commands, URLs, files, variables and secrets.

The files have the form of `.mcp.json`.
"""
