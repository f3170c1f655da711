"""Words for failed provider calls: facts (what happened), context (about what) and verdict (what it means).

Adapters build `FailureFacts`; `hermes.policy.classify` turns them into a `Verdict`; nothing here decides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

JsonValue: TypeAlias = "bool | int | float | str | Sequence[JsonValue] | Mapping[str, JsonValue] | None"
"""What `json.loads` returns. Readers must cope with any other object too (it counts as absent)."""


class Reason(StrEnum):
    """The eighteen meanings a failed call can have (DESIGN §5). Reactions beneath one are a `detail`."""

    AUTH = "auth"
    AUTH_PERMANENT = "auth_permanent"
    BILLING = "billing"
    RATE_LIMIT = "rate_limit"
    OVERLOADED = "overloaded"
    SERVER_ERROR = "server_error"
    TIMEOUT = "timeout"
    CONTEXT_OVERFLOW = "context_overflow"
    PAYLOAD_TOO_LARGE = "payload_too_large"
    IMAGE_TOO_LARGE = "image_too_large"
    MODEL_NOT_FOUND = "model_not_found"
    PROVIDER_POLICY_BLOCKED = "provider_policy_blocked"
    FORMAT_ERROR = "format_error"
    THINKING_SIGNATURE = "thinking_signature"
    LONG_CONTEXT_TIER = "long_context_tier"
    OAUTH_LONG_CONTEXT_BETA_FORBIDDEN = "oauth_long_context_beta_forbidden"
    LLAMA_CPP_GRAMMAR_PATTERN = "llama_cpp_grammar_pattern"
    UNKNOWN = "unknown"


class FaultKind(StrEnum):
    """How the failure showed itself on our side of the wire."""

    HTTP_STATUS = "http_status"
    """An answer with a status outside 2xx."""
    ERROR_IN_200 = "error_in_200"
    """A 2xx answer whose body is an error object."""
    ERROR_EVENT = "error_event"
    """An error event inside a stream that had begun with a 2xx."""
    REFUSED = "refused"
    DNS = "dns"
    CONNECT_TIMEOUT = "connect_timeout"
    POOL_TIMEOUT = "pool_timeout"
    FIRST_BYTE_TIMEOUT = "first_byte_timeout"
    STALLED = "stalled"
    """Bytes had come, then none for `stall_timeout`."""
    TOTAL_TIMEOUT = "total_timeout"
    RESET = "reset"
    """Connection lost before the first byte of the answer."""
    CUT = "cut"
    """Connection lost in the middle of the answer."""
    ENDED_EARLY = "ended_early"
    """Clean end of a stream without its terminator."""
    WRONG_TYPE = "wrong_type"
    """HTML, or plain JSON in answer to a stream."""
    BAD_JSON = "bad_json"
    EMPTY_ANSWER = "empty_answer"
    """A complete answer with neither text nor tool call."""
    TRUNCATED_ANSWER = "truncated_answer"
    """The output limit ended the answer's text."""
    TRUNCATED_TOOL_CALL = "truncated_tool_call"
    """The answer ended inside a tool call's arguments."""
    CERTIFICATE = "certificate"
    PROXY = "proxy"
    REQUEST_INVALID = "request_invalid"
    """Refused before sending (by the SDK or our own renderer)."""
    UNMAPPED = "unmapped"
    """An exception no adapter knows; counted by its type."""


class Phase(StrEnum):
    """How far the call had come."""

    CONNECT = "connect"
    REQUEST = "request"
    FIRST_BYTE = "first_byte"
    STREAM = "stream"
    RESPONSE = "response"
    """The whole answer was there and was wrong in itself."""


@dataclass(frozen=True, slots=True)
class FailureFacts:
    """One failed call as its adapter saw it. Nothing is interpreted; waits are parsed by `classify`.

    `body` is the JSON-like body, or the raw text where it was none. `headers` have lower-case names.
    `exception` is the class's dotted or plain name, `causes` the same for its *explicit* cause chain
    (never an unrelated context), outermost first. `tokens_seen`: some output had already arrived.
    """

    kind: FaultKind
    phase: Phase = Phase.RESPONSE
    provider: str = ""
    model: str = ""
    status: int | None = None
    code: str | None = None
    type: str | None = None
    param: str | None = None
    message: str = ""
    body: object = None
    headers: Mapping[str, str] = field(default_factory=dict)
    exception: str | None = None
    causes: tuple[str, ...] = ()
    tokens_seen: bool = False


@dataclass(frozen=True, slots=True)
class CallContext:
    """What was asked. Token counts are estimates or None (unknown). `now`: UTC epoch seconds, used only to
    turn dates into waits; without it a reset date gives `reset_at` and no `retry_after`."""

    prompt_tokens: int | None = None
    context_window: int | None = None
    max_output: int | None = None
    has_images: bool = False
    has_thinking: bool = False
    has_tools: bool = False
    now: float | None = None


@dataclass(frozen=True, slots=True)
class StatedRate:
    """What a refusal says is allowed: `amount` calls (or `tokens`) in any `seconds`."""

    amount: int
    seconds: float
    tokens: bool = False

    @property
    def calls_by_minute(self) -> bool:
        """Whether it is of the kind that a refusal without numbers is taken for."""
        return not self.tokens and 55.0 <= self.seconds <= 65.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a failure means.

    `rule` names the rule that decided. `retry_after` (seconds, >= 0, finite) is how long the upstream asks
    us to wait, also when it was stated as a date; `reset_at` is the same in UTC epoch seconds if a date or
    epoch was stated. `retryable`: the unchanged request with the same credential can succeed later with no
    human act and no rewrite. `limit` is the number the error states for the thing exceeded: the window
    (context_overflow), output tokens allowed (format_error/output_cap, context_overflow/output_cap), bytes or
    pixels (image_too_large, see `detail`). `requested` is what the error says we asked for. `rate` is the rate
    that a rate_limit names.
    """

    reason: Reason
    rule: str
    detail: str | None = None
    retry_after: float | None = None
    reset_at: float | None = None
    retryable: bool = False
    limit: int | None = None
    requested: int | None = None
    rate: StatedRate | None = None
