"""The browser of the tests: Chromium's headless shell, the same engine for half the CPU of the whole browser."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from needed import missing
from playwright.sync_api import Browser, sync_playwright

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--no-first-run",
    "--disable-sync",
    "--renderer-process-limit=1",  # each page would start a process of its own
)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start Debian's headless shell; skip the test if it is not installed.

    Playwright's driver starts only if the browser is there: it needs libraries that a small machine may lack.
    """
    command = shutil.which("chromium-headless-shell")
    if command is None:
        missing("there is no headless Chromium: apt-get install chromium-headless-shell")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=command, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()
