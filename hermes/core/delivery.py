"""Words for failed platform calls: facts (what happened), verdict (what it means), decision (what now).

Adapters build `DeliveryFacts`; `hermes.policy.delivery` turns them into a `DeliveryVerdict` and then into a
`Decision`; nothing here decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

MARK_PREFIX = "↻ (may be a repeat) "
"""What a create that may already have arrived begins with when it is sent once more (R19)."""


class DeliveryReason(StrEnum):
    """The meanings a failed platform call can have (CONTRACT, ``explain error --platform``)."""

    NETWORK_RETRYABLE = "network_retryable"
    FLOOD_WAIT = "flood_wait"
    TIMEOUT_AMBIGUOUS = "timeout_ambiguous"
    FORMATTING = "formatting"
    TOO_LONG = "too_long"
    PERMANENT_TARGET = "permanent_target"
    PERMANENT_AUTH = "permanent_auth"
    CONFLICT = "conflict"
    FATAL_CONFIG = "fatal_config"
    UNKNOWN = "unknown"


class Operation(StrEnum):
    """What is done to a chat. Only a create is unsafe to repeat (R18)."""

    CREATE = "create"
    EDIT = "edit"
    DELETE = "delete"
    REACTION = "reaction"


class Sent(StrEnum):
    """Whether the platform may have acted on the request."""

    NOT_SENT = "not_sent"
    """No byte of it reached the platform: refused connection, DNS, pool or connect time-out (R18)."""
    MAYBE_SENT = "maybe_sent"
    """Bytes left and no whole answer came: the platform may have acted."""
    REFUSED = "refused"
    """The platform answered, with an error."""


class Uncertain(StrEnum):
    """``gateway.delivery.uncertain``: what becomes of a create that may already have arrived."""

    MARK = "mark"
    HOLD = "hold"


@dataclass(frozen=True, slots=True)
class DeliveryFacts:
    """One failed platform call as its adapter saw it. Nothing is interpreted.

    `code` is the platform's own code ("50035", "invalid_auth", "4014"); `message` its sentence; `body` the
    JSON-like body, or the raw text where it was none. `exception` is the class's dotted or plain name,
    `causes` the same for its explicit cause chain, outermost first. `headers` have lower-case names.
    `retry_after` in seconds, where the adapter could read it. `migrate_to` is the chat's new id where the
    platform named one.
    """

    platform: str
    exception: str | None = None
    status: int | None = None
    code: str | None = None
    message: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: object = None
    sent: Sent = Sent.REFUSED
    retry_after: float | None = None
    migrate_to: str | None = None
    causes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DeliveryVerdict:
    """What a failed platform call means.

    `rule` names the rule that decided. `retry_after` in seconds, finite and not negative. `detail` beneath
    the reason: ``not_modified``, ``migrated``, ``message_gone``, ``not_sent``, ``no_answer``, ``server`` …
    `new_chat` is the id that a migrated chat has now.
    """

    reason: DeliveryReason
    rule: str
    detail: str | None = None
    retry_after: float | None = None
    new_chat: str | None = None


@dataclass(frozen=True, slots=True)
class SendAgain:
    """The same once more, after so many seconds."""

    after: float


@dataclass(frozen=True, slots=True)
class SendMarked:
    """Once more with MARK_PREFIX, after so many seconds."""

    after: float


@dataclass(frozen=True, slots=True)
class SendPlain:
    """The markup was refused: the whole text at once, without any."""


@dataclass(frozen=True, slots=True)
class WaitLink:
    """Back to ``pending`` until the platform's link is up, or the row's age bound passes."""


@dataclass(frozen=True, slots=True)
class Succeeded:
    """What was wanted is the case already; nothing is left to do."""

    detail: str


@dataclass(frozen=True, slots=True)
class Hold:
    """Listed for the owner: it may have arrived."""

    why: str


@dataclass(frozen=True, slots=True)
class Bury:
    """A dead letter: sending the same again cannot succeed."""

    why: str


Decision = SendAgain | SendMarked | SendPlain | WaitLink | Succeeded | Hold | Bury
