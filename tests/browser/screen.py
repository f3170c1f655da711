"""What a person does with the page and sees on it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import BrowserContext, ConsoleMessage, Dialog, Page, expect

from tests.wire.gateway.harness import Gateway
from tests.wire.web.page import token_of

WITHIN = 30_000.0
"""Milliseconds after which something that should be seen is not."""

expect.set_options(timeout=WITHIN)

HARMLESS = re.compile(r"Failed to load resource|net::ERR_|ERR_CONNECTION|ERR_INCOMPLETE")
"""Console lines about a gateway that is down or wants a sign-in, which some tests bring about."""


@dataclass(slots=True)
class Screen:
    """One tab. ``faults``: errors of scripts, breaches of the page's policy, dialogs."""

    page: Page
    faults: list[str] = field(default_factory=list)

    @classmethod
    def open(cls, context: BrowserContext, gateway: Gateway, *, signed_in: bool) -> Screen:
        """By the printed address, or (signed in already, or not to be) without its token."""
        screen = cls(context.new_page())
        screen.page.on("pageerror", lambda error: screen.faults.append(f"error: {error}"))
        screen.page.on("dialog", lambda dialog: screen._asked(dialog))
        screen.page.on("console", lambda message: screen._said(message))
        fragment = f"#token={token_of(gateway)}" if signed_in else ""
        screen.page.goto(f"{gateway.url}/{fragment}")
        return screen

    def _asked(self, dialog: Dialog) -> None:
        self.faults.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _said(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not HARMLESS.search(message.text):
            self.faults.append(f"console: {message.text}")

    def say(self, text: str) -> None:
        """Types and presses Enter."""
        box = self.page.get_by_label("Message")
        box.fill(text)
        box.press("Enter")

    def wait_ready(self) -> None:
        """The page is signed in and its stream is open."""
        expect(self.page.locator("#summary")).to_contain_text("ready")

    def wait_line(self, text: str, *, count: int = 1, who: str = "agent") -> None:
        """``count`` stored lines of ``who`` hold the text."""
        expect(self.lines(who).filter(has_text=text)).to_have_count(count)

    def lines(self, who: str) -> Any:
        """Lines that stand in the chat, drafts excluded."""
        return self.page.locator(f"#lines .{who}:not(.live)")

    def texts(self) -> list[str]:
        """All stored lines, in order."""
        found: list[str] = self.page.locator("#lines .said:not(.live) .body").all_inner_texts()
        return found
