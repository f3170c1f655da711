"""What an edited message does (R9): it never runs anything again and is never a command."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class OriginalState(StrEnum):
    """How far the message that was edited had come."""

    UNKNOWN = "unknown"
    """We never accepted it, or its row is gone."""
    WAITING = "waiting"
    """In the inbox; its turn has not begun."""
    IN_TURN = "in_turn"
    ANSWERED = "answered"
    OTHER = "other"
    """It ended without a turn: a command, an answer to a question, stopped, expired."""


@dataclass(frozen=True, slots=True)
class ReplaceText:
    """The waiting row gets the new text; the old one ends as ``replaced_by_edit``."""

    text: str


@dataclass(frozen=True, slots=True)
class AddNote:
    """The next input says so; no turn starts because of it."""

    note: str


@dataclass(frozen=True, slots=True)
class IgnoreEdit:
    """Nothing to do; ``reason`` goes into the outcome."""

    reason: str


EditDecision = ReplaceText | AddNote | IgnoreEdit
_NOTE_LIMIT = 2000


def decide_edit(original: OriginalState, old_text: str | None, new_text: str) -> EditDecision:
    """What becomes of an edit.

    `old_text` is what we know of the original, None if nothing. An edit that turns a waiting message into
    something with a slash replaces its text as plain text: the caller must not parse it as a command.
    """
    if old_text is not None and old_text.strip() == new_text.strip():
        return IgnoreEdit("edit changed no text")
    match original:
        case OriginalState.WAITING:
            return ReplaceText(new_text)
        case OriginalState.IN_TURN | OriginalState.ANSWERED:
            shown = new_text if len(new_text) <= _NOTE_LIMIT else new_text[: _NOTE_LIMIT - 1] + "…"
            return AddNote(f"[The user edited an earlier message. It now reads: {shown}]")
        case OriginalState.UNKNOWN:
            return IgnoreEdit("edit of a message we never had")
        case OriginalState.OTHER:
            return IgnoreEdit("edit of a message that needed no answer")
