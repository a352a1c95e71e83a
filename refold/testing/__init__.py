"""A kit for testing modules: replayed runs, generated states, a clock.

Each name is imported on first use, so that only `states` needs hypothesis, and only `assert_replays` and
`fold_with_jsonpatch` need jsonpatch (`pip install "refold[testing]"`).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
