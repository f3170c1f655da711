"""What the rehearsal can play: faults as a real upstream's adapter would report them, and performances.

The wording of each fault is what the named upstream sends, so that the real classifier decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from hermes.core.failures import FailureFacts, FaultKind, Phase


class Scope(Enum):
    """What makes two calls the same one, when its attempts are counted."""

    REQUEST = "request"
    """The whole conversation: a call repeated unchanged."""
    QUESTION = "question"
    """The last question only: the cure may change everything before it."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A call that fails ``times`` times and then succeeds; 0 = it never does.

    ``words`` of the answer are shown before it fails, ``wait`` seconds pass first.
    """

    about: str
    kind: FaultKind = FaultKind.HTTP_STATUS
    phase: Phase = Phase.RESPONSE
    times: int = 1
    words: int = 0
    wait: float = 0.0
    status: int | None = None
    code: str | None = None
    type: str | None = None
    message: str = ""
    body: object = None
    headers: Mapping[str, str] = field(default_factory=dict)
    exception: str | None = None
    causes: tuple[str, ...] = ()
    scope: Scope = Scope.REQUEST

    def facts(self, provider: str, model: str) -> FailureFacts:
        """The facts an adapter would have raised."""
        return FailureFacts(
            kind=self.kind,
            phase=self.phase,
            provider=provider,
            model=model,
            status=self.status,
            code=self.code,
            type=self.type,
            message=self.message,
            body=self.body,
            headers=self.headers,
            exception=self.exception,
            causes=self.causes,
            tokens_seen=self.words > 0,
        )


class Performance(Enum):
    """A call that succeeds in a way worth watching; the value says what is seen."""

    SLOW = "an answer that comes word by word for some seconds"
    LONG = "an answer too long for one message of a chat platform"
    MARKDOWN = "an answer with every kind of formatting"
    TOOL = "a tool call, and an answer made of its result"
    CLARIFY = "a question back to you, by buttons or in words"
    LOOP = "the same tool call again and again, until the guardrails stop it"


def _status(
    about: str,
    status: int,
    exception: str,
    message: str,
    *,
    type: str | None = None,
    code: str | None = None,
    times: int = 1,
    headers: Mapping[str, str] | None = None,
    scope: Scope = Scope.REQUEST,
) -> Fault:
    """An answer with an error status in OpenAI's shape."""
    return Fault(
        about,
        status=status,
        times=times,
        type=type,
        code=code,
        message=message,
        body={"error": {"message": message, "type": type, "param": None, "code": code}},
        headers=dict(headers or {}),
        exception=exception,
        scope=scope,
    )


def _lost(about: str, kind: FaultKind, phase: Phase, *causes: str, **more: float) -> Fault:
    """A failure of the way there."""
    return Fault(
        about,
        kind=kind,
        phase=phase,
        message="Connection error.",
        exception="openai.APIConnectionError",
        causes=causes,
        words=int(more.get("words", 0)),
        wait=more.get("wait", 0.0),
        times=int(more.get("times", 1)),
    )


FAULTS: Mapping[str, Fault] = {
    "429": _status(
        "a rate limit with Retry-After: 2", 429, "openai.RateLimitError",
        "Rate limit reached for requests. Please try again in 2s.",
        type="requests", code="rate_limit_exceeded", headers={"retry-after": "2"},
    ),
    "500": _status(
        "two internal errors", 500, "openai.InternalServerError",
        "The server had an error while processing your request. Sorry about that!",
        type="server_error", times=2,
    ),
    "503": _status(
        "an overloaded server", 503, "openai.InternalServerError",
        "The engine is currently overloaded, please try again later.", type="service_unavailable",
    ),
    "529": Fault(
        "Anthropic's word for overloaded", status=529, type="overloaded_error", message="Overloaded",
        body={"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
        exception="anthropic.OverloadedError",
    ),
    "401": _status(
        "a refused key", 401, "openai.AuthenticationError", "Incorrect API key provided.",
        type="invalid_request_error", code="invalid_api_key",
    ),
    "billing": _status(
        "an account without credit", 429, "openai.RateLimitError",
        "You exceeded your current quota, please check your plan and billing details.",
        type="insufficient_quota", code="insufficient_quota",
    ),
    "404": _status(
        "a model that does not exist", 404, "openai.NotFoundError",
        "The model `rehearsal-9` does not exist or you do not have access to it.",
        type="invalid_request_error", code="model_not_found",
    ),
    "400": _status(
        "a request that the server finds malformed", 400, "openai.BadRequestError",
        "Invalid value for 'messages': expected an array.", type="invalid_request_error",
    ),
    "overflow": _status(
        "a conversation beyond the context window", 400, "openai.BadRequestError",
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 9301 tokens. "
        "Please reduce the length of the messages.",
        type="invalid_request_error", code="context_length_exceeded", scope=Scope.QUESTION,
    ),
    "refused": _lost(
        "a server that is not there", FaultKind.REFUSED, Phase.CONNECT,
        "httpx2.ConnectError", "ConnectionRefusedError",
    ),
    "reset": _lost(
        "a connection that is dropped before the answer", FaultKind.RESET, Phase.FIRST_BYTE,
        "httpx2.RemoteProtocolError",
    ),
    "timeout": _lost(
        "a server that accepts and never answers", FaultKind.FIRST_BYTE_TIMEOUT, Phase.FIRST_BYTE, wait=3.0
    ),
    "cut": _lost(
        "a connection that is lost in the middle of an answer", FaultKind.CUT, Phase.STREAM,
        "httpx2.RemoteProtocolError", words=8,
    ),
    "stall": _lost(
        "an answer that stops moving", FaultKind.STALLED, Phase.STREAM, words=8, wait=3.0
    ),
    "early": Fault(
        "a stream that ends without its terminator", kind=FaultKind.ENDED_EARLY, phase=Phase.STREAM,
        status=200, words=8, message="the stream ended without a finish_reason",
    ),
    "html": Fault(
        "a proxy's page instead of an answer", kind=FaultKind.WRONG_TYPE, status=200,
        message="a page instead of an answer (text/html)",
        body="<html><head><title>Just a moment...</title></head><body></body></html>",
        headers={"content-type": "text/html"},
    ),
    "garbage": Fault(
        "a stream with something in it that is no JSON", kind=FaultKind.BAD_JSON, phase=Phase.STREAM,
        status=200, words=4, message="not JSON: Expecting value: line 1 column 1 (char 0)", body="<garbage>",
    ),
    "empty": Fault(
        "an answer that says nothing", kind=FaultKind.EMPTY_ANSWER, status=200,
        message="an answer with neither text nor tool call", body={"finish_reason": "stop"},
    ),
    "half": Fault(
        "a tool call whose arguments stop in the middle", kind=FaultKind.TRUNCATED_TOOL_CALL, status=200,
        message="the answer ended inside a tool call's arguments",
    ),
    "down": _status(
        "an outage that outlasts every retry", 503, "openai.InternalServerError",
        "Service temporarily unavailable.", type="service_unavailable", times=6,
    ),
}

PERFORMANCES: Mapping[str, Performance] = {each.name.lower(): each for each in Performance}
