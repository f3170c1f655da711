"""What a model is told of a message: who, when, in answer to what, and that something could not be read."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC
from typing import Any

import pytest

from hermes.agent.prompt import DEFAULT_SOUL, MAX_PART_CHARS, PLATFORM_HINTS, Instructions, compose
from hermes.core.events import Address, AttachmentRef, MessageEvent, NothingToDo
from hermes.core.ids import InboxId
from hermes.core.ports import TurnInput
from hermes.core.principals import ChatKind, ChatRef, Identity
from hermes.core.records import InboxRow
from hermes.core.transcript import UserItem
from tests.unit.store.making import NOW, update

EVENT = MessageEvent(
    Identity("telegram", "1", "7", "Ann"), ChatRef("telegram", "1", "7", None, ChatKind.PRIVATE),
    Address("telegram", "1", "7"), "hello", "1", NOW,
)  # fmt: skip
PHOTO = AttachmentRef("photo", "f", "a.jpg")
GROUP = ChatRef("telegram", "1", "-5", None, ChatKind.GROUP)


def said(number: int, **changes: Any) -> TurnInput:
    return TurnInput(InboxRow(InboxId(number), update(number), None, None, 0, NOW), replace(EVENT, **changes))


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, "hello"),
        ({"chat": GROUP}, "Ann: hello"),
        ({"edited": True}, "[an earlier message was edited and now reads:] hello"),
        ({"quoted": "q" * 900}, "> " + "q" * 500 + "\n\nhello"),
        ({"text": "", "attachments": (PHOTO,)}, "[attached, not readable here: photo a.jpg]"),
    ],
)
def test_a_message_is_told_with_what_belongs_to_it(changes: dict[str, Any], text: str) -> None:
    [item] = compose([said(1, **changes)], UTC)
    assert item.item == UserItem(text)
    assert item.inbox_ids == (1,)


def test_a_backlog_is_one_item_with_times_and_names_each_row_once() -> None:
    [item] = compose([said(1), said(2, text="again", sent_at=NOW + 3600)], UTC)
    assert item.item == UserItem("[2027-01-15 08:00] hello\n\n[2027-01-15 09:00] again")
    assert item.inbox_ids == (1, 2)
    [close] = compose([said(1), said(2, text="again", sent_at=NOW + 5)], UTC)
    assert close.item == UserItem("hello\n\nagain")


def test_nothing_said_is_no_input() -> None:
    quiet = TurnInput(InboxRow(InboxId(1), update(1), None, None, 0, NOW), NothingToDo("a pin"))
    assert compose([quiet], UTC) == ()
    assert compose([], UTC) == ()


SOULS = ((None, DEFAULT_SOUL), ("  \n", DEFAULT_SOUL), (" Be brief. \n", "Be brief."))


@pytest.mark.parametrize(("soul", "told"), SOULS)
def test_the_owners_text_replaces_ours_where_there_is_one(soul: str | None, told: str) -> None:
    assert Instructions(soul).system() == told


def test_the_owners_files_come_first_and_the_platforms_hint_last() -> None:
    text = Instructions("You are Ada.", "Answer in French.\n").system("telegram")
    assert text == f"You are Ada.\n\nAnswer in French.\n\n{PLATFORM_HINTS['telegram']}"


def test_a_file_that_is_far_too_long_is_cut() -> None:
    assert len(Instructions("x" * (MAX_PART_CHARS + 1)).system()) == MAX_PART_CHARS
