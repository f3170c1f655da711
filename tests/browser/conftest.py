"""Debian's Chromium in front of a gateway that runs as a process of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, sync_playwright

from tests.browser.screen import Screen
from tests.capabilities import chromium
from tests.wire.gateway.harness import Gateway
from tests.wire.web.page import rehearsing

FLAGS = (
    "--headless",
    "--no-sandbox",  # root in a container; the pages are our own
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

Visit = Callable[..., Screen]


@pytest.fixture(scope="module")
def chrome() -> Iterator[Browser]:
    """One browser process a module; each visit has its own profile."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """Running, with the rehearsal; for tests that do not stop it."""
    running = rehearsing(tmp_path_factory.mktemp("browser") / "home").start()
    yield running
    running.close()


@pytest.fixture
def own_gateway(tmp_path: Path) -> Iterator[Gateway]:
    """Running, with an empty history; a test may kill it."""
    running = rehearsing(tmp_path / "home").start()
    yield running
    running.close()


@pytest.fixture
def visit(chrome: Browser) -> Iterator[Visit]:
    """Opens a gateway's page signed in, in a profile of its own or (``within``) as one more tab."""
    with ExitStack() as contexts:

        def open_page(
            gateway: Gateway,
            *,
            phone: bool = False,
            within: Screen | None = None,
            signed_in: bool | None = None,
        ) -> Screen:
            if within is not None:
                return Screen.open(within.page.context, gateway, signed_in=bool(signed_in))
            context: BrowserContext = chrome.new_context(
                viewport={"width": 390, "height": 844} if phone else {"width": 1280, "height": 800},
                is_mobile=phone,
                has_touch=phone,
            )
            contexts.callback(context.close)
            return Screen.open(context, gateway, signed_in=signed_in is not False)

        yield open_page
