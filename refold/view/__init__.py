"""The viewer of runs: its server and, in `client`, its files.

`pages` computes the answers, `app` answers requests, and `serve` is the command. `client/api.d.ts` declares the
interface of page and server. Nothing here runs code that a trace names, except `actions`, which the command must turn
on.
"""
