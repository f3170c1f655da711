"""What both adapters' ``failures`` share: from the errors of the wire to kinds and phases.

Only *explicit* causes are followed (``__cause__``): an unrelated error that happened to be handled at the
time says nothing about this one.
"""

from __future__ import annotations

import collections
import json
import socket
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import aiohttp
import httpx2

from hermes.core.failures import FailureFacts, FaultKind, Phase
from hermes.core.transcript import ModelReply
from hermes.providers.answers import SHOWN_LIMIT, WrongAnswer, message_of
from hermes.providers.clients import Closed
from hermes.providers.limits import LimitReached

CAUSES_LIMIT = 10
BODY_LIMIT = 64 * 1024


@dataclass(slots=True)
class CallProgress:
    """How far one call had come when it failed; the adapter keeps it up to date."""

    provider: str
    model: str
    phase: Phase = Phase.REQUEST
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    tokens_seen: bool = False

    def answered(self, response: httpx2.Response) -> None:
        """The answer's headers are there."""
        self.phase = Phase.STREAM
        self.status = response.status_code
        self.headers = headers_of(response)


def with_limits(reply: ModelReply, call: CallProgress) -> ModelReply:
    """The reply with what the answer's headers said of rate limits, if they did."""
    found = {name: value for name, value in call.headers.items() if "ratelimit" in name}
    return replace(reply, limits=found) if found else reply


class UnmappedCounts:
    """How often an exception of each type came that no rule knows (R26); for metrics and tests."""

    LIMIT = 100

    def __init__(self) -> None:
        self._counts: collections.Counter[str] = collections.Counter()

    def add(self, name: str) -> None:
        """Counts one; beyond ``LIMIT`` types they share one entry."""
        self._counts[name if name in self._counts or len(self._counts) < self.LIMIT else "other"] += 1

    def counts(self) -> dict[str, int]:
        """Type name → how often."""
        return dict(self._counts)


def name_of(error: BaseException) -> str:
    """The error's class, as facts name it."""
    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def chain(error: BaseException) -> Iterator[BaseException]:
    """``error`` and its explicit causes, outermost first, bounded."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen and len(seen) < CAUSES_LIMIT:
        seen.add(id(current))
        yield current
        current = current.__cause__


def headers_of(response: httpx2.Response) -> dict[str, str]:
    """The answer's headers, names in lower case, without cookies."""
    return {name: value for name, value in response.headers.items() if name != "set-cookie"}


def facts_of_wire(error: Exception, call: CallProgress) -> FailureFacts | None:
    """Facts for our own findings and the transport's errors, however wrapped; None for anything else."""
    errors = list(chain(error))
    for each in errors:
        if isinstance(each, WrongAnswer):
            return _of_wrong_answer(each, call)
    found = _kind(errors, call)
    if found is None:
        return None
    kind, phase = found
    last = errors[-1]
    return FailureFacts(
        kind=kind,
        phase=phase,
        provider=call.provider,
        model=call.model,
        status=call.status,
        message=_text(error, last),
        headers=call.headers,
        exception=name_of(error),
        causes=tuple(name_of(each) for each in errors[1:]),
        tokens_seen=call.tokens_seen,
    )


def _text(error: BaseException, last: BaseException) -> str:
    texts = dict.fromkeys(filter(None, (str(error), str(last))))
    return ": ".join(texts)[:SHOWN_LIMIT]


def _of_wrong_answer(error: WrongAnswer, call: CallProgress) -> FailureFacts:
    code, kind, param, _ = described(error.body)
    return FailureFacts(
        kind=error.kind,
        phase=error.phase,
        provider=call.provider,
        model=call.model,
        status=call.status,
        code=code,
        type=kind,
        param=param,
        message=error.message,
        body=error.body,
        headers=call.headers,
        tokens_seen=call.tokens_seen,
    )


def _kind(errors: list[BaseException], call: CallProgress) -> tuple[FaultKind, Phase] | None:
    """The most telling error of a chain decides; the innermost ones are the system's own words."""
    begun = call.phase is Phase.STREAM
    for each in reversed(errors):
        match each:
            case Closed():
                return FaultKind.REQUEST_INVALID, Phase.REQUEST
            case LimitReached():
                waiting = each.kind is FaultKind.FIRST_BYTE_TIMEOUT or not begun
                return each.kind, Phase.FIRST_BYTE if waiting else Phase.STREAM
            case ssl.SSLCertVerificationError() | ssl.CertificateError():
                return FaultKind.CERTIFICATE, Phase.CONNECT
            case aiohttp.ClientConnectorCertificateError():
                return FaultKind.CERTIFICATE, Phase.CONNECT
            case socket.gaierror() | aiohttp.ClientConnectorDNSError():
                return FaultKind.DNS, Phase.CONNECT
            case ConnectionRefusedError():
                return FaultKind.REFUSED, Phase.CONNECT
    for each in errors:
        if found := _kind_of_httpx2(each, errors, begun):
            return found
    return None


def _kind_of_httpx2(
    error: BaseException, errors: list[BaseException], begun: bool
) -> tuple[FaultKind, Phase] | None:
    match error:
        case httpx2.ProxyError():
            return FaultKind.PROXY, Phase.CONNECT
        case httpx2.PoolTimeout():
            return FaultKind.POOL_TIMEOUT, Phase.CONNECT
        case httpx2.ConnectTimeout():
            return FaultKind.CONNECT_TIMEOUT, Phase.CONNECT
        case httpx2.TimeoutException():
            if begun:
                return FaultKind.STALLED, Phase.STREAM
            return FaultKind.FIRST_BYTE_TIMEOUT, Phase.FIRST_BYTE
        case httpx2.ConnectError():
            lost = any(isinstance(e, ConnectionResetError | BrokenPipeError | ssl.SSLError) for e in errors)
            return (FaultKind.RESET if lost else FaultKind.REFUSED), Phase.CONNECT
        case httpx2.UnsupportedProtocol() | httpx2.LocalProtocolError() | httpx2.InvalidURL():
            return FaultKind.REQUEST_INVALID, Phase.REQUEST
        case httpx2.DecodingError():
            return FaultKind.BAD_JSON, Phase.RESPONSE
        case httpx2.TooManyRedirects():
            return FaultKind.WRONG_TYPE, Phase.RESPONSE
        case httpx2.TransportError():
            return (FaultKind.CUT, Phase.STREAM) if begun else (FaultKind.RESET, Phase.FIRST_BYTE)
    return None


def facts_of_status(response: httpx2.Response, call: CallProgress, error: Exception) -> FailureFacts:
    """Facts for an answer with a status outside 2xx, whose body has been read."""
    body = _body(response)
    code, kind, param, message = described(body)
    return FailureFacts(
        kind=FaultKind.HTTP_STATUS,
        phase=Phase.RESPONSE,
        provider=call.provider,
        model=call.model,
        status=response.status_code,
        code=code,
        type=kind,
        param=param,
        message=message or str(error)[:SHOWN_LIMIT],
        body=body,
        headers=headers_of(response),
        exception=name_of(error),
        causes=tuple(name_of(each) for each in list(chain(error))[1:]),
    )


def facts_of_body(
    error: Exception, call: CallProgress, kind: FaultKind, body: object, phase: Phase = Phase.RESPONSE
) -> FailureFacts:
    """Facts for an error whose ``kind`` is known and whose ``body`` may tell more."""
    code, error_type, param, message = described(body)
    return FailureFacts(
        kind=kind,
        phase=phase,
        provider=call.provider,
        model=call.model,
        status=call.status,
        code=code,
        type=error_type,
        param=param,
        message=message or str(error)[:SHOWN_LIMIT],
        body=body,
        headers=call.headers,
        exception=name_of(error),
        causes=tuple(name_of(each) for each in list(chain(error))[1:]),
        tokens_seen=call.tokens_seen,
    )


def unmapped(error: Exception, call: CallProgress, counts: UnmappedCounts) -> FailureFacts:
    """Facts for an exception that nobody foresaw; counted by its type."""
    errors = list(chain(error))
    counts.add(name_of(error))
    return FailureFacts(
        kind=FaultKind.UNMAPPED,
        phase=call.phase,
        provider=call.provider,
        model=call.model,
        status=call.status,
        message=_text(error, errors[-1]),
        headers=call.headers,
        exception=name_of(error),
        causes=tuple(name_of(each) for each in errors[1:]),
        tokens_seen=call.tokens_seen,
    )


def _body(response: httpx2.Response) -> object:
    raw = response.content
    if len(raw) <= BODY_LIMIT:
        try:
            return json.loads(raw)
        except (ValueError, RecursionError):
            pass
    return raw[:SHOWN_LIMIT].decode("utf-8", "replace")


def described(body: object) -> tuple[str | None, str | None, str | None, str]:
    """(code, type, param, message) of an error body, wherever the dialect keeps them."""
    if not isinstance(body, Mapping):
        return None, None, None, body if isinstance(body, str) else ""
    error = body.get("error") or body.get("detail") or body
    if not isinstance(error, Mapping):
        return _word(body.get("code")), _word(body.get("type")), None, message_of(error)
    details = error.get("details")
    code = error.get("code")
    if code is None and isinstance(details, Mapping):
        code = details.get("error_code")
    return _word(code), _word(error.get("type")), _word(error.get("param")), message_of(error)


def _word(value: object) -> str | None:
    """llama-server's codes are integers; facts have words."""
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else None
