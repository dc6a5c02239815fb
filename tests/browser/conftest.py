"""One Chromium a test process; without one the tests are skipped and say so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from chromium import NAMES, Browser, installed


@pytest.fixture(scope="session")
def session_browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """The browser that all tests of a process share."""
    if installed() is None:
        pytest.skip(f"no browser here: none of {', '.join(NAMES)} is installed")
    browser = Browser(Path(tmp_path_factory.mktemp("profile")))
    yield browser
    browser.close()


@pytest.fixture
def browser(session_browser: Browser) -> Browser:
    """The browser, as wide as a laptop's window, light."""
    session_browser.size(1280, 900)
    session_browser.scheme("light")
    return session_browser
