"""Entry point of `python -m refold.cli`."""

from .entry import main

main()
