"""One limit for the requests of many runs.

`Pace` computes requests a second from reports of accepted and refused requests. `RateLimiter` is the *gate* of a
process: each request waits at the gate for its turn, at the pace, and reports its outcome. `use_limiter` sets the
limiter of a block of code, and `request_slot` passes its gate; the Agent's generators call `request_slot` themselves.
"""

from .limiter import RateLimiter, RequestSlot, current_limiter, request_slot, use_limiter
from .pace import Pace, Report

__all__ = ["Pace", "RateLimiter", "Report", "RequestSlot", "current_limiter", "request_slot", "use_limiter"]
