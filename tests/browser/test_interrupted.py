"""The gateway goes away under an open page, which comes back by itself and loses nothing."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visit
from tests.wire.gateway.harness import Gateway
from tests.wire.web.page import token_of

pytestmark = pytest.mark.browser


def test_what_is_typed_while_the_gateway_is_dead_is_sent_once_when_it_is_back(
    own_gateway: Gateway, visit: Visit
) -> None:
    screen = visit(own_gateway)
    screen.say("before")
    screen.wait_line("You said: “before”")
    own_gateway.kill()
    expect(screen.page.locator("#summary")).not_to_contain_text("ready")
    screen.say("typed in the dark")
    screen.say("and one more")
    expect(screen.page.locator("#lines .person.waiting")).to_contain_text("not sent yet")
    own_gateway.start()
    screen.wait_line("You said: “typed in the dark”")
    screen.wait_line("and one more")
    screen.wait_ready()
    texts = screen.texts()
    assert texts.count("typed in the dark") == 1
    assert texts.count("and one more") == 1
    assert texts.index("typed in the dark") < texts.index("and one more")
    screen.page.reload()
    screen.wait_line("and one more")
    assert sorted(screen.texts()) == sorted(texts)
    assert screen.faults == []


def test_an_unsent_message_outlives_a_reload(own_gateway: Gateway, visit: Visit) -> None:
    screen = visit(own_gateway)
    screen.wait_ready()
    own_gateway.kill()
    screen.say("kept by the browser")
    expect(screen.page.locator("#lines .person.waiting")).to_be_visible()
    own_gateway.start()
    screen.page.reload()
    screen.wait_line("You said: “kept by the browser”")
    screen.wait_line("kept by the browser", who="person")
    assert screen.page.evaluate("localStorage.length") == 0


def test_an_answer_that_a_kill_cut_off_arrives_after_the_restart(own_gateway: Gateway, visit: Visit) -> None:
    screen = visit(own_gateway)
    screen.wait_ready()
    screen.say("/rehearse slow")
    expect(screen.page.locator("#lines .live")).to_contain_text("takes its time")
    own_gateway.kill()
    expect(screen.page.locator("#summary")).not_to_contain_text("ready")
    own_gateway.start()
    screen.wait_line("That was all.")
    screen.wait_line("/rehearse slow", who="person")
    expect(screen.page.locator("#stop")).to_be_hidden()


def test_a_token_that_was_replaced_asks_for_the_new_one(own_gateway: Gateway, visit: Visit) -> None:
    screen = visit(own_gateway)
    screen.say("with the old token")
    screen.wait_line("You said: “with the old token”")
    own_gateway.stop()
    (own_gateway.home / "credentials.json").unlink()
    own_gateway.start()
    expect(screen.page.get_by_role("dialog", name="Sign in")).to_be_visible()
    screen.page.get_by_label("Address or token").fill(token_of(own_gateway))
    screen.page.keyboard.press("Enter")
    screen.say("with the new token")
    screen.wait_line("You said: “with the new token”")
    screen.wait_line("You said: “with the old token”")
