"""One limit for the requests of many runs.

`RateLimiter` is the *gate* of a process: each request waits at the gate for its turn, and reports its outcome. The rate
is a known limit, or learned from the requests that a provider refuses. `use_limiter` sets the limiter of a block of
code, and `request_slot` passes its gate; the Agent's generators call `request_slot` themselves.
"""

from .limiter import RateLimiter, request_slot, use_limiter

__all__ = [
    "RateLimiter",
    "request_slot",
    "use_limiter",
]
