"""The browser of the tests: Chromium's headless shell, the same engine for half the CPU of the whole browser."""

import shutil

from needed import missing
from playwright.sync_api import Browser, Playwright

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--no-first-run",
    "--disable-sync",
    "--renderer-process-limit=1",  # each page would start a process of its own
)


def launch(playwright: Playwright) -> Browser:
    """Start Debian's headless shell; skip the test if it is not installed."""
    command = shutil.which("chromium-headless-shell")
    if command is None:
        missing("there is no headless Chromium: apt-get install chromium-headless-shell")
    return playwright.chromium.launch(executable_path=command, args=FLAGS)
