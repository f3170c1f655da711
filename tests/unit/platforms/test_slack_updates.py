"""Slack's events as envelopes and as what they mean, both pure."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.core.errors import Poison
from hermes.core.events import ButtonEvent, MessageEvent, NothingToDo, RawUpdate
from hermes.core.principals import ChatKind
from hermes.platforms.slack.envelope import Envelopes, Ourselves
from hermes.platforms.slack.normalise import normalise, plain_text, without_mention

US = Ourselves("UBOT", "T1", "BBOT")
TS = "1712345678.000100"
THREAD = "1712345000.000200"


def envelopes(*threads: tuple[str, str]) -> Envelopes:
    def kind(channel: str) -> str:
        return "im" if channel.startswith("D") else "mpim" if channel.startswith("G") else "channel"

    return Envelopes(US, kind, lambda channel, thread: (channel, thread) in threads)


def event(**more: Any) -> dict[str, Any]:
    return {"type": "message", "user": "U7", "text": "hello", "ts": TS, "channel": "D1", **more}


def read(told: Any, *threads: tuple[str, str]) -> RawUpdate:
    found = envelopes(*threads).event(told, 1.0)
    assert found is not None
    return found


def meaning(told: Any) -> MessageEvent:
    found = normalise(read(told).raw)
    assert isinstance(found, MessageEvent)
    return found


@pytest.mark.parametrize(
    ("told", "thread", "kind"),
    [
        (event(), None, ChatKind.PRIVATE),
        (event(thread_ts=THREAD), THREAD, ChatKind.PRIVATE),
        (event(channel="C1"), TS, ChatKind.GROUP),
        (event(channel="C1", thread_ts=THREAD), THREAD, ChatKind.GROUP),
        (event(channel="G1"), None, ChatKind.GROUP),
        (event(channel="C9", channel_type="mpim"), None, ChatKind.GROUP),
        (event(channel="C9", channel_type="im"), None, ChatKind.PRIVATE),
    ],
)
def test_where_something_was_said(told: dict[str, Any], thread: str | None, kind: ChatKind) -> None:
    update, found = read(told), meaning(told)
    assert update.chat == found.chat
    assert (found.chat.thread_id, found.chat.kind) == (thread, kind)
    assert found.address.thread_id == thread


@pytest.mark.parametrize(
    ("told", "addressed"),
    [
        (event(), True),
        (event(channel="C1"), False),
        (event(channel="C1", text="hi <@UBOT>"), True),
        (event(channel="C1", text="hi <@UBOT|hermes>"), True),
        (event(channel="C1", text="hi <@UBOTHER>"), False),
        (event(channel="C1", thread_ts=THREAD), False),
        (event(channel="C1", thread_ts=THREAD, parent_user_id="UBOT"), True),
        (event(channel="C2", thread_ts=THREAD), True),
        (event(channel="G1"), False),
    ],
)
def test_whom_it_is_for(told: dict[str, Any], *, addressed: bool) -> None:
    update = read(told, ("C2", THREAD))
    found = normalise(update.raw)
    assert isinstance(found, MessageEvent)
    assert update.addressed is found.addressed is addressed


@pytest.mark.parametrize(
    "told",
    [
        event(subtype="channel_join"),
        event(subtype="message_deleted"),
        event(subtype="message_changed", message=event()),
        event(subtype="message_changed", message=event(subtype="channel_topic", edited={"ts": TS})),
        {"type": "reaction_added", "user": "U7"},
        event(hidden=True),
    ],
)
def test_what_nobody_said_is_nothing(told: dict[str, Any]) -> None:
    assert envelopes().event(told, 1.0) is None


@pytest.mark.parametrize(
    ("told", "ours", "bot"),
    [
        (event(), False, False),
        (event(user="UBOT", bot_id="BBOT"), True, True),
        (event(user=None, bot_id="BBOT", subtype="bot_message"), True, True),
        (event(user=None, bot_id="BELSE", subtype="bot_message"), False, True),
        (event(bot_id="BELSE"), False, True),
    ],
)
def test_who_said_it(told: dict[str, Any], *, ours: bool, bot: bool) -> None:
    update = read(told)
    assert update.identity is not None
    assert (update.identity.is_ourselves, update.identity.is_bot) == (ours, bot)
    assert isinstance(normalise(update.raw), NothingToDo if bot else MessageEvent)


def test_the_key_is_the_thing_and_its_edit() -> None:
    mention = read({**event(channel="C1", text="<@UBOT> hi"), "type": "app_mention"})
    message = read(event(channel="C1", text="<@UBOT> hi", channel_type="channel", event_ts="1.0"))
    assert mention.dedup_key == message.dedup_key
    edited = event(edited={"user": "U7", "ts": "1712345999.000300"})
    changed = read(event(subtype="message_changed", message=edited, ts="1712345999.000400"))
    assert changed.dedup_key != message.dedup_key
    assert changed.message_ref == f"D1:{TS}"
    assert read(edited).dedup_key == changed.dedup_key


def test_an_edit_is_one_only_when_it_was_told_as_one() -> None:
    edited = event(edited={"user": "U7", "ts": "1712345999.000300"}, text="new")
    assert meaning(event(subtype="message_changed", message=edited)).edited
    assert not meaning(edited).edited


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("a &lt;b&gt; &amp;amp; c", "a <b> &amp; c"),
        ("<https://a.org/x?y=1&amp;z=2>", "https://a.org/x?y=1&z=2"),
        ("<https://a.org|a page>", "a page (https://a.org)"),
        ("<mailto:a@b.org|a@b.org>", "a@b.org"),
        ("<@U1> <@U2|ann> <@U3|@bob>", "@U1 @ann @bob"),
        ("<#C1|general> <#C2>", "#general #C2"),
        ("<!here> <!subteam^S1|@team> <!date^1^{date}|today>", "@here @team today"),
        ("1 < 2 > 0", "1 < 2 > 0"),
    ],
)
def test_text_as_a_person_reads_it(written: str, shown: str) -> None:
    assert plain_text(written) == shown


def test_our_name_is_taken_out_wherever_it_stands() -> None:
    assert without_mention("<@UBOT> what <@UBOT|hermes>now", "UBOT") == "what now"
    assert without_mention("<@UBOTHER> hi", "UBOT") == "<@UBOTHER> hi"


def test_nothing_that_expires_or_opens_a_door_is_kept() -> None:
    secret = "https://files.slack.com/xoxb-secret"
    files = [{"id": "F1", "name": "a.png", "mimetype": "image/png", "url_private": secret, "permalink_public": secret}]
    update = read(event(files=files, subtype="file_share", client_msg_id=secret, blocks=[{"text": secret}]))
    pressed = {
        "type": "block_actions", "response_url": secret, "trigger_id": secret, "user": {"id": "U7"},
        "channel": {"id": "D1"}, "message": {"ts": TS, "text": secret}, "token": secret,
        "actions": [{"action_id": "a", "value": "v", "action_ts": TS}],
    }  # fmt: skip
    button = envelopes().button(pressed, 1.0)
    command = {"command": "/hermes", "text": "status", "user_id": "U7", "channel_id": "D1", "response_url": secret,
               "trigger_id": secret, "token": secret}  # fmt: skip
    assert button is not None
    for found in (update, button, envelopes().command(command, 1.0)):
        assert "secret" not in found.raw
        assert found.problem is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("status", "/status"), ("STOP", "/STOP"), ("", "/help"), ("/stop", "/stop"),
        ("queue buy milk", "/queue buy milk"), ("what is new?", "what is new?"), ("hello", "hello"),
    ],
)  # fmt: skip
def test_a_slash_command_is_a_command_of_ours_or_something_said(text: str, said: str) -> None:
    told = {"command": "/hermes", "text": text, "user_id": "U7", "channel_id": "D1", "trigger_id": "1.2.3"}
    update = envelopes().command(told, 5.0)
    found = normalise(update.raw)
    assert isinstance(found, MessageEvent)
    assert (found.text, found.sent_at, update.addressed) == (said, 5.0, True)
    assert envelopes().command(told, 9.0).dedup_key == update.dedup_key
    assert envelopes().command({**told, "trigger_id": "4.5.6"}, 5.0).dedup_key != update.dedup_key


def test_a_press_says_which_button_of_which_message_in_which_thread() -> None:
    told = {
        "type": "block_actions", "user": {"id": "U7", "username": "ann"}, "channel": {"id": "C1"},
        "container": {"message_ts": TS, "channel_id": "C1", "thread_ts": THREAD},
        "actions": [{"action_id": "hermes.1", "value": "q:2", "action_ts": "1712345999.000300"}],
    }  # fmt: skip
    update = envelopes().button(told, 1.0)
    assert update is not None
    found = normalise(update.raw)
    assert isinstance(found, ButtonEvent)
    assert (found.data, found.message_ref, found.identity.user_id) == ("q:2", f"C1:{TS}", "U7")
    assert found.address.thread_id == THREAD
    assert envelopes().button({"type": "view_submission"}, 1.0) is None


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
        lambda inner: st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "user", "text", "ts", "channel", "thread_ts", "edited", "files", "actions",
                             "message", "subtype", "bot_id", "attachments", "id", "channel_id", "user_id"])
            | st.text(max_size=5),
            inner | st.sampled_from(["message", TS, "D1", "U7", "message_changed", "block_actions"]), max_size=6,
        ),
        max_leaves=12,
    )
)  # fmt: skip
def test_any_event_becomes_an_envelope_that_can_be_stored_or_nothing(told: Any) -> None:
    makers = envelopes()
    for update in (makers.event(told, 1.0), makers.button(told, 1.0), makers.command(told, 1.0)):
        if update is None:
            continue
        assert update.raw.isascii()
        assert json.loads(update.raw)
        assert (update.problem is None) == (update.identity is not None)
        try:
            normalise(update.raw)
        except Poison:
            continue
