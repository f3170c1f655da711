"""Whether a message in a group is meant for the bot is told by the envelope, and never makes it unreadable."""

from __future__ import annotations

from typing import Any

import pytest

from hermes.platforms.telegram.envelope import Envelopes

GROUP = {"id": -7, "type": "supergroup"}
ANNA = {"id": 42, "is_bot": False, "first_name": "Anna"}


def addressed(chat: dict[str, Any] = GROUP, **message: Any) -> bool:
    body = {"message_id": 1, "date": 1_796_000_000, "chat": chat, "from": ANNA, **message}
    update = Envelopes("99", "OurBot").of({"update_id": 1, "message": body}, 0.0)
    assert update.problem is None
    return update.addressed


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ({"text": "lunch?"}, False),
        ({"text": "@OurBot lunch?"}, True),
        ({"text": "lunch, @ourbot?"}, True),
        ({"text": "ask @OurBotanist"}, False),
        ({"caption": "@OurBot look", "photo": []}, True),
        ({"text": "/stop"}, True),
        ({"text": "/stop@OurBot now"}, True),
        ({"text": "/stop@OtherBot"}, False),
        ({"text": "yes", "reply_to_message": {"from": {"id": 99}}}, True),
        ({"text": "yes", "reply_to_message": {"from": {"id": 42}}}, False),
        ({"text": "you", "entities": [{"type": "text_mention", "user": {"id": 99}}]}, True),
        ({"text": "you", "entities": [{"type": "text_mention", "user": {"id": 98}}, None, 4]}, False),
        ({"text": "x", "reply_to_message": 12}, True),
        ({"text": "x", "entities": "none"}, False),
    ],
)
def test_a_group_message_is_for_us_when_it_names_us_answers_us_or_commands(
    message: dict[str, Any], expected: bool
) -> None:
    assert addressed(**message) is expected


def test_in_a_private_chat_each_message_is_for_us() -> None:
    assert addressed({"id": 42, "type": "private"}, text="lunch?")
