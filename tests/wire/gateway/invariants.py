"""What must hold on disk and in the chats, however often the gateway was killed (promises 1, 2 and 6)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hermes.core.delivery import MARK_PREFIX
from hermes.core.transcript import ToolResultItem, load_item
from tests.waiting import until
from tests.wire.gateway.harness import DISCORD_BOT, Chat, Gateway

OPEN_ROWS = "SELECT seq, state, reason FROM outbox WHERE state IN ('drafting', 'pending', 'sending', 'uncertain')"

WAITING_REPEATS = "SELECT chat_id FROM outbox WHERE mark=1 AND operation='create' AND state IN ('pending', 'sending')"


@dataclass(frozen=True, slots=True)
class Tally:
    """What was counted while checking."""

    messages: int
    repeats: int
    """Marked copies."""


def check_disk(gateway: Gateway, *, parked: int = 0) -> None:
    """Every accepted row has its outcome; nothing is left half done. The gateway must have ended."""
    without = gateway.rows("SELECT id, state, raw FROM inbox WHERE outcome IS NULL OR state<>'done'")
    assert not without, f"accepted and without outcome: {without}"
    assert not gateway.rows(OPEN_ROWS)
    assert not gateway.rows("SELECT id, state FROM turns WHERE state<>'done'")
    assert not gateway.rows("SELECT id, turn_id FROM ledger WHERE state='open'")
    assert not gateway.rows("SELECT id, kind, name FROM journal WHERE open=1")
    assert gateway.rows("SELECT count(*) FROM turns WHERE parked=1") == [(parked,)]
    assert gateway.rows("PRAGMA integrity_check") == [("ok",)]
    check_legal(gateway)


def check_legal(gateway: Gateway) -> None:
    """Each tool call has exactly one result."""
    for (session,) in gateway.rows("SELECT id FROM sessions"):
        found = gateway.rows("SELECT item FROM messages WHERE session_id=? ORDER BY seq", session)
        items = [load_item(text) for (text,) in found]
        calls = [call.call_id for item in items for call in getattr(item, "tool_calls", ())]
        results = [item.call_id for item in items if isinstance(item, ToolResultItem)]
        assert sorted(calls) == sorted(results), (session, calls, results)


def check_chats(telegram: Chat, said: Mapping[int, Sequence[str]]) -> Tally:
    """Each of the texts, all different, is answered: once unmarked at most, and marked copies are counted."""
    messages = repeats = 0
    for chat, texts in said.items():
        heard = telegram.texts(chat)
        for text in texts:
            copies = [line for line in heard if text in line]
            unmarked = [line for line in copies if not line.startswith(MARK_PREFIX)]
            assert copies, f"{text!r} of chat {chat} has no answer: {heard}"
            assert len(unmarked) <= 1, f"{text!r} of chat {chat} has {len(unmarked)} unmarked answers: {heard}"
            messages += 1
            repeats += len(copies) - len(unmarked)
    return Tally(messages, repeats)


def unanswered(telegram: Chat, said: Mapping[int, Sequence[str]]) -> list[str]:
    """The texts that no message of the bot repeats yet."""
    missing = []
    for chat, texts in said.items():
        heard = "\n".join(telegram.texts(chat))
        missing += [text for text in texts if text not in heard]
    return missing


def stop_when_delivered(gateway: Gateway, telegram: Chat) -> None:
    """SIGTERM; while possible repeats still wait for their 30 s on disk, starts again and waits for them."""
    for _ in range(3):
        assert gateway.stop() == 0
        waiting = [int(chat) for (chat,) in gateway.rows(WAITING_REPEATS)]
        if not waiting:
            return
        counts = {chat: len(telegram.texts(chat)) + waiting.count(chat) for chat in waiting}
        gateway.start()
        until(
            lambda: all(len(telegram.texts(chat)) >= count for chat, count in counts.items()),  # noqa: B023
            within=90, why="possible repeats arrive with their mark", every=0.5,
        )  # fmt: skip


def texts_done(gateway: Gateway) -> set[str]:
    """Texts of the messages whose outcome is on disk; the gateway must have ended."""
    found = gateway.rows("SELECT raw FROM inbox WHERE state='done'")
    return {_text(json.loads(raw)) for (raw,) in found}


def _text(update: Mapping[str, Any]) -> str:
    """What the person wrote, whichever platform's update it is; a mention of the bot is no part of it."""
    said = update.get("message") or update.get("d") or update.get("e") or {}
    return str(said.get("text") or said.get("content") or "").removeprefix(f"<@{DISCORD_BOT}> ")
