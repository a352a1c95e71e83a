"""`refold agent` and `refold tools`: an Agent made of options, given a goal or a chat, made again from a trace."""
