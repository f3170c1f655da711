"""What a model is told: a short stable system text, the transcript, and the new words.

The prefix of two consecutive requests is the same, so that providers' prompt caches hit. The texts are
short on purpose: small local models have windows of a thousand tokens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo

from hermes.core.attachments import Picture, Received
from hermes.core.events import MessageEvent
from hermes.core.ids import InboxId
from hermes.core.ports import TurnInput
from hermes.core.principals import ChatKind
from hermes.core.records import InputItem
from hermes.core.transcript import UserItem
from hermes.policy.attachments import named, told

DEFAULT_SOUL = (
    "You are Hermes, a helpful assistant in a chat. Answer plainly and briefly, in the language you are "
    "addressed in. Markdown is fine."
)
SESSION_GAP_SECONDS = 300.0
"""Messages of one turn further apart than this carry their time (R9)."""


PLATFORM_HINTS: Mapping[str, str] = {
    "telegram": "You are writing in Telegram: short paragraphs; a table is shown as plain text.",
    "discord": "You are writing in Discord: short paragraphs; a table is shown as a code block.",
    "slack": "You are writing in Slack: short paragraphs; a table is shown as a code block.",
}
MAX_PART_CHARS = 40_000
"""Of SOUL.md and of AGENTS.md each: about ten thousand tokens, which every single call pays for."""


@dataclass(frozen=True, slots=True)
class Instructions:
    """What the owner wrote for the agent: SOUL.md (who it is) and AGENTS.md (how things are done here)."""

    soul: str | None = None
    agents: str | None = None

    def system(self, platform: str = "") -> str:
        """The system text for a conversation on ``platform``: the same for each of its calls."""
        soul = (self.soul or "").strip() or DEFAULT_SOUL
        parts = (soul, (self.agents or "").strip(), PLATFORM_HINTS.get(platform, ""))
        return "\n\n".join(part[:MAX_PART_CHARS] for part in parts if part)


def compose(inputs: Sequence[TurnInput], zone: tzinfo) -> tuple[InputItem, ...]:
    """The turn's inputs as one transcript item, each message with its time when they are a backlog."""
    spoken = [(i, i.event) for i in inputs if isinstance(i.event, MessageEvent)]
    if not spoken:
        return ()
    first, last = spoken[0][1], spoken[-1][1]
    dated = len(spoken) > 1 and last.sent_at - first.sent_at > SESSION_GAP_SECONDS
    texts = [_line(event, given.received, zone, dated=dated) for given, event in spoken]
    ids: tuple[InboxId, ...] = tuple(given.row.id for given, _ in spoken)
    # people send one picture twice; it is shown once
    images = dict.fromkeys(r.image for given, _ in spoken for r in given.received if isinstance(r, Picture))
    return (InputItem(UserItem("\n\n".join(texts), images=tuple(images)), ids),)


def _line(event: MessageEvent, received: Sequence[Received], zone: tzinfo, *, dated: bool) -> str:
    text = "\n".join(filter(None, (event.text, *map(told, received))))
    if not received and event.attachments:
        listed = ", ".join(map(named, event.attachments))
        text = f"{text}\n[attached, not readable here: {listed}]".strip()
    if event.quoted:
        text = f"> {event.quoted[:500]}\n\n{text}"
    if event.edited:
        text = f"[an earlier message was edited and now reads:] {text}"
    if event.chat.kind is not ChatKind.PRIVATE and event.identity.display:
        text = f"{event.identity.display}: {text}"
    if dated:
        at = datetime.fromtimestamp(event.sent_at, zone)
        text = f"[{at:%Y-%m-%d %H:%M}] {text}"
    return text
