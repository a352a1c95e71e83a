"""`refold agent` and `refold tools`: an Agent from options or a trace."""
