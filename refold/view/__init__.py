"""The page on which one looks at runs: its server and, in `client`, its files.

`pages` computes what the page is given, `app` answers requests, and `serve` is the command. The page and the server
speak what `client/api.d.ts` says. Nothing here runs code that a trace names; only `act`, which is off unless the
command turns it on, runs the module that the user names.
"""
