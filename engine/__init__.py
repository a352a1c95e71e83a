"""The engine: carries out the runs of a module, step by step.

It has the state, decisions, the loop and its runner, effects, budgets, replay and resuming.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
