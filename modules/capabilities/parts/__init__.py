"""A capability's parts: agents, servers, Python files, tools and policies."""
