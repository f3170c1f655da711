"""A person sends files from the page: chosen, shown before they go, and read by the turn."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visit
from tests.pictures import picture
from tests.wire.gateway.harness import Gateway

pytestmark = pytest.mark.browser


def test_a_chosen_file_is_shown_sent_with_the_message_and_read(own_gateway: Gateway, visit: Visit) -> None:
    screen = visit(own_gateway)
    screen.wait_ready()
    chosen = [
        {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"the word is heron"},
        {"name": "photo.png", "mimeType": "image/png", "buffer": picture()},
        {"name": "not this.txt", "mimeType": "text/plain", "buffer": b"removed"},
    ]
    screen.page.locator("#file").set_input_files(chosen)
    expect(screen.page.locator("#files li:not(.sending)")).to_have_count(3)
    screen.page.get_by_role("button", name="Remove not this.txt").click()
    expect(screen.page.locator("#files li")).to_have_count(2)
    screen.say("read it")
    screen.wait_line("the word is heron")
    expect(screen.page.locator("#files")).to_be_hidden()
    before = screen.texts()
    assert before[0] == "read it\n📎 notes.txt\n📎 photo.png"
    assert "not this" not in before[1]
    screen.page.reload()
    screen.wait_line("the word is heron")
    assert screen.texts() == before
    assert screen.faults == []


def test_a_file_that_is_too_large_is_told_and_the_message_can_go_without_it(
    own_gateway: Gateway, visit: Visit
) -> None:
    screen = visit(own_gateway)
    screen.wait_ready()
    big = {"name": "big.bin", "mimeType": "application/octet-stream", "buffer": b"\0" * (21 * 2**20)}
    screen.page.locator("#file").set_input_files([big])
    expect(screen.page.locator("#lines .notice")).to_contain_text("big.bin was not taken")
    expect(screen.page.locator("#files")).to_be_hidden()
    screen.say("hello")
    screen.wait_line("You said: “hello”")
