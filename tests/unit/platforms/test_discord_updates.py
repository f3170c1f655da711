"""Discord's events as envelopes and as events, without a wire (R1, R2)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.core.errors import Poison
from hermes.core.events import ButtonEvent, MessageEvent, NothingToDo, RawUpdate
from hermes.core.principals import ChatKind
from hermes.platforms.discord.adapter import DiscordPlatform
from hermes.platforms.discord.envelope import Envelopes
from hermes.platforms.discord.normalise import normalise
from hermes.platforms.discord.socket import SERVED

BOT = "424242"
ENVELOPES = Envelopes(BOT)
AUTHOR = {"id": "7", "username": "ann", "global_name": "Ann"}
MESSAGE: dict[str, Any] = {
    "id": "1577178290790072320", "channel_id": "10", "author": AUTHOR, "content": "hello", "type": 0,
    "timestamp": "2026-12-01T04:00:00.000000+00:00", "edited_timestamp": None, "mentions": [], "attachments": [],
}  # fmt: skip


def update(parent: str | None = None, name: str = "MESSAGE_CREATE", **more: Any) -> RawUpdate:
    return ENVELOPES.message(name, {**MESSAGE, **more}, parent=parent, received_at=5.0)


def event(parent: str | None = None, **more: Any) -> MessageEvent:
    found = normalise(update(parent, **more).raw)
    assert isinstance(found, MessageEvent)
    return found


def test_the_key_is_the_message_and_its_edit() -> None:
    first, again = update(), update(pinned=True)
    edited = update(edited_timestamp="2026-12-01T04:05:00.000000+00:00")
    assert first.dedup_key == again.dedup_key == f"{BOT}:10:1577178290790072320:0"
    assert edited.dedup_key != first.dedup_key
    assert (first.message_ref, edited.message_ref) == ("10:1577178290790072320",) * 2
    assert edited.sent_at == 1796097900.0


def test_a_message_is_dated_by_its_id() -> None:
    assert update().sent_at == pytest.approx(1796099007.08)


def test_private_guild_and_thread() -> None:
    assert (event().chat.kind, event().chat.thread_id) == (ChatKind.PRIVATE, None)
    in_guild = event(guild_id="900")
    assert (in_guild.chat.kind, in_guild.chat.chat_id, in_guild.address.reply_to) == (
        ChatKind.GROUP, "10", MESSAGE["id"],
    )  # fmt: skip
    in_thread = event(guild_id="900", parent="3")
    assert (in_thread.chat.chat_id, in_thread.chat.thread_id) == ("3", "10")
    assert (in_thread.address.chat_id, in_thread.address.thread_id) == ("3", "10")


@pytest.mark.parametrize(
    ("more", "addressed"),
    [
        ({}, True),
        ({"guild_id": "900"}, False),
        ({"guild_id": "900", "mentions": [{"id": BOT}]}, True),
        ({"guild_id": "900", "mentions": [{"id": "8"}]}, False),
        ({"guild_id": "900", "referenced_message": {"id": "1", "author": {"id": BOT}, "content": "x"}}, True),
        ({"guild_id": "900", "referenced_message": {"id": "1", "author": {"id": "8"}, "content": "x"}}, False),
        ({"guild_id": "900", "referenced_message": None}, False),
        ({"guild_id": "900", "content": "/stop"}, True),
    ],
)
def test_who_is_meant(more: dict[str, Any], addressed: bool) -> None:
    assert update(**more).addressed is addressed
    assert event(**more).addressed is addressed


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (f"<@{BOT}> what?", "what?"),
        (f"hey <@!{BOT}>", "hey"),
        ("ask <@8> or <@9>", "ask @Bob or <@9>"),
        ("<:party:123> and <a:dance:45>", ":party: and :dance:"),
        ("a < b > c", "a < b > c"),
        ("  spaced  ", "  spaced  "),
    ],
)
def test_ids_in_a_text_become_names(content: str, text: str) -> None:
    assert event(content=content, mentions=[{"id": "8", "username": "bob", "global_name": "Bob"}]).text == text


def test_what_is_no_text_is_described() -> None:
    found = event(
        content="",
        sticker_items=[{"id": "1", "name": "wave"}],
        poll={"question": {"text": "tea?"}, "answers": []},
        message_snapshots=[{"message": {"content": "said elsewhere", "attachments": [{"id": "5", "filename": "f"}]}}],
    )
    assert found.text == "[sticker wave]\n[poll: tea?]\n[forwarded]\nsaid elsewhere"
    assert [file.ref for file in found.attachments] == [f"10:{MESSAGE['id']}:5"]


@pytest.mark.parametrize(
    ("mime", "flags", "kind"),
    [
        ("image/png", 0, "photo"),
        ("audio/ogg", 1 << 13, "voice"),
        ("audio/mpeg", 0, "audio"),
        ("video/mp4", 0, "video"),
        ("text/plain; charset=utf-8", 0, "document"),
        (None, 0, "document"),
    ],
)
def test_files_have_a_kind(mime: str | None, flags: int, kind: str) -> None:
    one = {"id": "5", "filename": "f", "size": 9, "content_type": mime, "url": "https://x/?ex=1", "proxy_url": "https://y"}
    raw = update(attachments=[one], flags=flags).raw
    assert "https" not in raw
    (file,) = event(attachments=[one], flags=flags).attachments
    assert (file.kind, file.name, file.size) == (kind, "f", 9)


def test_webhooks_and_bots_are_told() -> None:
    assert update(author={**AUTHOR, "bot": True}).identity == update(webhook_id="77").identity
    nick = update(member={"nick": "Annie", "roles": ["1"]}, guild_id="900").identity
    assert nick is not None
    assert (nick.display, nick.is_bot) == ("Annie", False)


def test_nothing_is_made_of_what_nobody_said_and_of_nothing() -> None:
    assert isinstance(normalise(update(type=7).raw), NothingToDo)
    assert isinstance(normalise(update(content="").raw), NothingToDo)
    assert isinstance(normalise('{"t": "TYPING_START", "d": {}}'), NothingToDo)


def interaction(**more: Any) -> RawUpdate:
    data = {
        "id": "1577178290790072320", "token": "secret-token", "type": 3, "channel_id": "10", "guild_id": "900",
        "member": {"user": AUTHOR, "roles": []}, "data": {"custom_id": "q:1", "component_type": 2},
        "message": {"id": "55", "content": "which?"}, **more,
    }  # fmt: skip
    return ENVELOPES.interaction(data, parent=None, received_at=5.0)


def test_a_pressed_button() -> None:
    found = interaction()
    assert found.dedup_key == f"{BOT}:interaction:1577178290790072320"
    assert "secret-token" not in found.raw
    pressed = normalise(found.raw)
    assert isinstance(pressed, ButtonEvent)
    assert (pressed.data, pressed.message_ref, pressed.identity.display) == ("q:1", "10:55", "Ann")


def test_a_command_reads_as_it_would_have_been_written() -> None:
    data = {"id": "1", "name": "model", "options": [{"name": "text", "type": 3, "value": "fast one"}]}
    given_ = normalise(interaction(type=2, data=data, message=None).raw)
    assert isinstance(given_, MessageEvent)
    assert given_.text == "/model fast one"


def test_other_interactions_are_nothing() -> None:
    assert isinstance(normalise(interaction(type=4, message=None).raw), NothingToDo)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=8,
)
_FIELDS = ("id", "author", "content", "type", "mentions", "attachments", "edited_timestamp", "flags", "guild_id",
           "referenced_message", "message_snapshots", "sticker_items", "poll", "member", "webhook_id")  # fmt: skip
_MORE = ("channel_id", "channels", "threads", "parent_id", "last_message_id", "unavailable", "user", "token", "data")


@given(st.dictionaries(st.sampled_from(_FIELDS), _JSON, max_size=4))
def test_any_field_may_be_anything_and_the_envelope_and_the_event_agree(odd: dict[str, Any]) -> None:
    found = update(**odd)
    assert json.loads(found.raw)
    try:
        event = normalise(found.raw)
    except Poison:
        return
    if found.identity is None:
        assert found.problem
    elif isinstance(event, MessageEvent):
        assert (event.identity, event.chat, event.addressed) == (found.identity, found.chat, found.addressed)


@given(st.sampled_from(SERVED), _JSON | st.dictionaries(st.sampled_from((*_FIELDS, *_MORE)), _JSON, max_size=5))
def test_no_event_however_odd_ends_a_cycle(name: str, data: Any) -> None:
    platform = DiscordPlatform("token-of-a-bot")
    found = platform._event(name, data)
    assert found is None or json.loads(found.raw)
    platform._channels.cursors()
