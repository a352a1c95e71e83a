"""One limit for the requests of many runs.

A pace learns from refused requests, and a gate keeps the pace. `Pace` only computes: from reports of accepted and
refused requests, it returns requests a second. `RateLimiter` is the gate of a process: each request waits at the gate,
and reports its outcome. `use_limiter` sets the limiter of a block of code, and a request passes `request_slot`; the
Agent's generators do so on their own.
"""

from .limiter import RateLimiter, RequestSlot, current_limiter, request_slot, use_limiter
from .pace import Pace, Report

__all__ = ["Pace", "RateLimiter", "Report", "RequestSlot", "current_limiter", "request_slot", "use_limiter"]
