"""Entry point of `python -m refold.cli`."""

from . import main

main()
