"""A person chats in a real browser: answers, history, tabs, stop, recoveries, a phone."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visit
from tests.browser.screen import Screen
from tests.wire.gateway.harness import Gateway
from tests.wire.web.page import token_of

pytestmark = pytest.mark.browser

ASLEEP = 20_000
"""Milliseconds; a tab is relieved after eight seconds at most."""


def _overflow(screen: Screen) -> int:
    width: int = screen.page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    return width


def test_a_message_typed_gets_its_answer_and_a_reload_keeps_both(own_gateway: Gateway, visit: Visit) -> None:
    screen = visit(own_gateway)
    screen.say("hello there")
    screen.wait_line("You said: “hello there”")
    before = screen.texts()
    screen.page.reload()
    screen.wait_line("You said: “hello there”")
    assert screen.texts() == before
    assert before[0] == "hello there"
    assert len(before) == 2
    assert screen.faults == []


def test_the_token_leaves_the_address_at_once(gateway: Gateway, visit: Visit) -> None:
    screen = visit(gateway)
    screen.wait_ready()
    assert token_of(gateway) not in screen.page.url
    assert screen.page.evaluate("document.cookie") == ""
    stored = screen.page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}])")
    assert token_of(gateway) not in stored


def test_the_first_screen_says_that_there_is_no_model_and_how_to_get_one(
    own_gateway: Gateway, visit: Visit
) -> None:
    screen = visit(own_gateway)
    screen.wait_ready()
    expect(screen.page.get_by_role("heading", name="No model is configured yet")).to_be_visible()
    chat = screen.page.locator("#empty").inner_text()
    assert "rehearsal" in chat
    assert "no model" in chat
    assert "OPENAI_API_KEY" in chat
    assert "base_url" in chat
    expect(screen.page.locator("#models")).to_contain_text("no model is configured")
    expect(screen.page.locator("#models .light.ok")).to_have_count(0)
    screen.page.get_by_role("button", name="A rate limit").click()
    screen.wait_line("Retry-After: 2")


def test_a_recovery_is_watched_while_it_happens(gateway: Gateway, visit: Visit) -> None:
    screen = visit(gateway)
    screen.wait_ready()
    screen.say("/rehearse 429")
    notice = screen.page.locator("#lines .notice")
    expect(notice).to_contain_text("limits how often it may be asked; trying again in")
    expect(screen.page.locator("#lines .live .dots")).to_be_visible()
    screen.wait_line("Here is the answer. The call before it failed once on purpose (a rate limit")
    expect(screen.page.locator("#lines .live")).to_have_count(0)


def test_the_stop_button_stops_a_slow_answer(gateway: Gateway, visit: Visit) -> None:
    screen = visit(gateway)
    screen.wait_ready()
    expect(screen.page.locator("#stop")).to_be_hidden()
    screen.say("/rehearse slow")
    expect(screen.page.locator("#lines .live")).to_contain_text("This answer takes")
    screen.page.get_by_role("button", name="Stop").click()
    expect(screen.lines("agent").filter(has_text="topped").first).to_be_visible()
    expect(screen.page.locator("#stop")).to_be_hidden()
    expect(screen.page.locator("#lines .live")).to_have_count(0)
    assert not any("That was all." in text for text in screen.texts())


def test_a_page_opened_in_the_middle_can_stop_what_runs(gateway: Gateway, visit: Visit) -> None:
    first = visit(gateway)
    first.wait_ready()
    first.say("/rehearse slow")
    expect(first.page.locator("#lines .live")).to_contain_text("takes its time")
    first.page.reload()
    expect(first.page.locator("#lines .live")).to_contain_text("This answer takes its time")
    first.page.get_by_role("button", name="Stop").click()
    expect(first.page.locator("#stop")).to_be_hidden()


def test_eight_tabs_share_one_stream_and_see_the_same(own_gateway: Gateway, visit: Visit) -> None:
    """A browser opens six connections to a host: with a stream in each tab the seventh would hang."""
    first = visit(own_gateway)
    first.wait_ready()
    tabs = [first, *(visit(own_gateway, within=first) for _ in range(7))]
    for tab in tabs:
        tab.wait_ready()
    tabs[-1].say("to all of you")
    for tab in tabs:
        tab.wait_line("You said: “to all of you”")
        tab.wait_line("to all of you", who="person")
    first.page.close()  # the tab that held the stream
    tabs[3].say("after the first has gone")
    for tab in tabs[1:]:
        tab.wait_line("You said: “after the first has gone”")
        tab.wait_line("after the first has gone", who="person")
    assert len({tuple(tab.texts()) for tab in tabs[1:]}) == 1
    assert [fault for tab in tabs for fault in tab.faults] == []


def test_two_browsers_see_the_same(gateway: Gateway, visit: Visit) -> None:
    one, other = visit(gateway), visit(gateway)
    one.wait_ready()
    other.wait_ready()
    one.say("seen by both")
    for screen in (one, other):
        screen.wait_line("You said: “seen by both”")
        screen.wait_line("seen by both", who="person")


def test_two_gateways_on_one_machine_do_not_sign_each_other_out(
    gateway: Gateway, own_gateway: Gateway, visit: Visit
) -> None:
    """Cookies know no ports."""
    one = visit(gateway)
    one.wait_ready()
    other = visit(own_gateway, within=one, signed_in=True)
    other.wait_ready()
    one.page.reload()
    one.wait_ready()
    expect(one.page.get_by_role("dialog")).to_be_hidden()


def test_markdown_is_shown_without_breaking_the_pages_policy(gateway: Gateway, visit: Visit) -> None:
    screen = visit(gateway)
    screen.wait_ready()
    screen.say("/rehearse markdown")
    answer = screen.lines("agent").last
    expect(answer.locator("h1")).to_have_text("A heading")
    expect(answer.locator("td.right").first).to_have_text("1")
    expect(answer.locator("pre")).to_contain_text("return 42  # not *italic* here")
    link = answer.get_by_role("link", name="a link")
    expect(link).to_have_attribute("rel", "noopener noreferrer nofollow")
    assert screen.faults == []


def test_whoever_has_no_token_is_asked_for_it(gateway: Gateway, visit: Visit) -> None:
    screen = visit(gateway, signed_in=False)
    dialog = screen.page.get_by_role("dialog", name="Sign in")
    expect(dialog).to_be_visible()
    screen.page.keyboard.press("Escape")
    expect(dialog).to_be_visible()
    screen.page.get_by_label("Address or token").fill("wrong")
    screen.page.get_by_role("button", name="Sign in").click()
    expect(screen.page.get_by_role("alert")).to_contain_text("not valid")
    screen.page.get_by_label("Address or token").fill(f"{gateway.url}/#token={token_of(gateway)}")
    screen.page.keyboard.press("Enter")
    expect(dialog).to_be_hidden()
    screen.say("let in by the dialog")
    screen.wait_line("You said: “let in by the dialog”")


@pytest.mark.parametrize("order", ["", "/rehearse markdown", "/rehearse long", "x" * 400, "/rehearse help"])
def test_nothing_is_wider_than_a_phone(own_gateway: Gateway, visit: Visit, order: str) -> None:
    screen = visit(own_gateway, phone=True)
    screen.wait_ready()
    assert _overflow(screen) == 0
    if order:
        screen.page.get_by_label("Message").fill(order)
        screen.page.get_by_role("button", name="Send").tap()
        expect(screen.lines("agent").first).to_be_visible()
        assert _overflow(screen) == 0
    screen.page.get_by_role("button", name="State").tap()
    expect(screen.page.locator("#models")).to_be_visible()
    assert _overflow(screen) == 0
    screen.page.get_by_role("button", name="Close").tap()
    expect(screen.page.locator("#models")).to_be_hidden()


def test_shift_and_enter_make_a_new_line_and_enter_sends(gateway: Gateway, visit: Visit) -> None:
    screen = visit(gateway)
    screen.wait_ready()
    box = screen.page.get_by_label("Message")
    box.press_sequentially("first line")
    box.press("Shift+Enter")
    box.press_sequentially("second line")
    box.press("Enter")
    screen.wait_line("You said: “first line second line”")
    assert "first line\nsecond line" in screen.texts()
    expect(box).to_be_focused()


def test_a_message_that_is_refused_comes_back_into_the_box(gateway: Gateway, visit: Visit) -> None:
    screen = visit(gateway)
    screen.wait_ready()
    long = "too long " * 9000
    screen.say(long)
    expect(screen.page.locator("#lines .refused .when")).to_contain_text("platforms.web.max_message_bytes")
    expect(screen.page.get_by_label("Message")).to_have_value(long)
    screen.say("short enough")
    screen.wait_line("You said: “short enough”")


@pytest.mark.long
def test_a_tab_that_sleeps_with_the_stream_is_relieved_of_it(own_gateway: Gateway, visit: Visit) -> None:
    """A phone puts a tab in the background to sleep: it keeps the lock and tells the others nothing."""
    sleeper = visit(own_gateway)
    sleeper.wait_ready()
    awake = visit(own_gateway, within=sleeper)
    awake.wait_ready()
    sleeper.page.evaluate(
        f"setTimeout(() => {{ const end = Date.now() + {ASLEEP}; while (Date.now() < end); }}, 0)"
    )
    awake.say("is anybody listening")
    answer = awake.lines("agent").filter(has_text="You said: “is anybody listening”")
    expect(answer).to_have_count(1, timeout=ASLEEP - 5000)
    sleeper.wait_line("You said: “is anybody listening”")
    awake.say("both again")
    for screen in (sleeper, awake):
        screen.wait_line("You said: “both again”")
