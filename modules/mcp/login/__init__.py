"""Logins at servers: OAuth, the browser's page, and stored tokens."""
