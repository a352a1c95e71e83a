"""Entry point of `python -m refold`."""

from .cli import main

main()
