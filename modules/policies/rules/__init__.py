"""Rules that allow, ask for or deny calls of tools.

They match the tool's name and the call's arguments.
"""
