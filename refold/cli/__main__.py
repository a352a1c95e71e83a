"""`python -m refold.cli`: the command where no console script is installed."""

from .entry import main

main()
