"""What an upstream can do wrong, row by row (SDK_FACTS §4), and the facts that come of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from hermes.core.errors import ProviderFailure
from hermes.core.failures import FailureFacts, FaultKind, Phase
from tests.wire.providers.dialects import DIALECTS, Dialect, ask, stream
from tests.wire.providers.upstream import END, Act, Script, Upstream, head, part, whole

pytestmark = [pytest.mark.wire, pytest.mark.parametrize("dialect", DIALECTS, ids=lambda d: d.name)]


async def fails(dialect: Dialect, script: Script, **settings: float) -> FailureFacts:
    """The facts of one call that meets ``script``."""
    async with Upstream(script) as upstream:
        provider = dialect.provider(upstream.url, **settings)
        try:
            with pytest.raises(ProviderFailure) as caught:
                await provider.complete(ask(), lambda text: None)
        finally:
            await provider.aclose()
    assert (caught.value.facts.provider, caught.value.facts.model) == ("main", "some-model")
    return caught.value.facts


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 408, 409, 413, 422, 429, 500, 502, 503, 529])
async def test_an_error_status_is_told_with_all_that_came_with_it(dialect: Dialect, status: int) -> None:
    body = dialect.error_body("No, sorry.", "some_error", "some_code")
    facts = await fails(dialect, [whole(status, body, headers={"Retry-After": "150", "X-Request-Id": "r1"})])
    assert (facts.kind, facts.phase, facts.status) == (FaultKind.HTTP_STATUS, Phase.RESPONSE, status)
    assert (facts.type, facts.code, facts.message) == ("some_error", "some_code", "No, sorry.")
    assert facts.headers["retry-after"] == "150"
    assert facts.headers["x-request-id"] == "r1"
    assert isinstance(facts.body, dict)
    assert facts.body["error"]["message"] == "No, sorry."
    assert facts.exception is not None
    assert facts.exception.startswith(f"{dialect.name}.")


async def test_an_integer_code_becomes_a_word(dialect: Dialect) -> None:
    body = '{"error":{"code":400,"message":"too long","type":"exceed_context_size_error","n_ctx":1024}}'
    facts = await fails(dialect, [whole(400, body)])
    assert (facts.code, facts.type) == ("400", "exceed_context_size_error")


async def test_a_proxys_error_page_keeps_its_status_and_text(dialect: Dialect) -> None:
    facts = await fails(dialect, [whole(502, "<html>Bad Gateway</html>", "text/html")])
    assert (facts.kind, facts.status) == (FaultKind.HTTP_STATUS, 502)
    assert facts.body == "<html>Bad Gateway</html>"


async def test_an_endless_error_is_read_up_to_a_bound(dialect: Dialect) -> None:
    endless = b"HTTP/1.1 500 X\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n"
    facts = await fails(dialect, [endless, *[part("x" * 65_536)] * 8, Act.HANG])
    assert (facts.kind, facts.status) == (FaultKind.HTTP_STATUS, 500)
    assert isinstance(facts.body, str)
    assert len(facts.body) <= 4_000


@dataclass(frozen=True)
class Row:
    """One misbehaviour and what it must be called."""

    says: str
    script: Callable[[Dialect], Script]
    kind: FaultKind
    phase: Phase
    tokens_seen: bool = False
    status: int | None = 200


ROWS = [
    Row("a page instead of an answer",
        lambda d: [whole(200, "<!doctype html><html>Log in</html>", "text/html")],
        FaultKind.WRONG_TYPE, Phase.RESPONSE),
    Row("a page that calls itself a stream",
        lambda d: [whole(200, "\n<html>Log in</html>", "text/event-stream")],
        FaultKind.WRONG_TYPE, Phase.RESPONSE),
    Row("an empty object",
        lambda d: [whole(200, "{}")], FaultKind.WRONG_TYPE, Phase.RESPONSE),
    Row("JSON that is no object",
        lambda d: [whole(200, '["no"]')], FaultKind.WRONG_TYPE, Phase.RESPONSE),
    Row("JSON of something else",
        lambda d: [whole(200, '{"status": "ok"}')], FaultKind.WRONG_TYPE, Phase.RESPONSE),
    Row("a plain answer that is not finished",
        lambda d: [whole(200, d.document("hello", None))], FaultKind.WRONG_TYPE, Phase.RESPONSE),
    Row("half a JSON document",
        lambda d: [whole(200, d.document("hello")[:60])], FaultKind.BAD_JSON, Phase.RESPONSE),
    Row("an error object under 200",
        lambda d: [whole(200, d.error_body("quota", "insufficient_quota"))],
        FaultKind.ERROR_IN_200, Phase.RESPONSE),
    Row("an error object that calls itself a stream",
        lambda d: [whole(200, d.error_body("quota", "insufficient_quota"), "text/event-stream")],
        FaultKind.ERROR_IN_200, Phase.RESPONSE),
    Row("a framework's error under 200",
        lambda d: [whole(200, '{"detail": "model is loading"}')], FaultKind.ERROR_IN_200, Phase.RESPONSE),
    Row("nothing at all under 200",
        lambda d: [whole(200, "", "text/event-stream")], FaultKind.ENDED_EARLY, Phase.STREAM),
    Row("a stream of comments only",
        lambda d: stream(": hello\n\n", d.ping()), FaultKind.ENDED_EARLY, Phase.STREAM),
    Row("a clean end without a terminator",
        lambda d: stream(d.begin(), d.text("Hel")), FaultKind.ENDED_EARLY, Phase.STREAM, True),
    Row("a terminator without a reason to stop",
        lambda d: stream(d.begin(), d.text("Hel"), d.end()), FaultKind.ENDED_EARLY, Phase.STREAM, True),
    Row("half an event at a clean end",
        lambda d: stream(d.begin(), d.text("Hel"), d.text("lo")[:30]),
        FaultKind.ENDED_EARLY, Phase.STREAM, True),
    Row("an error event",
        lambda d: stream(d.begin(), d.text("Hel"), d.error_event()),
        FaultKind.ERROR_EVENT, Phase.STREAM, True),
    Row("an error event as the first one",
        lambda d: stream(d.error_event()), FaultKind.ERROR_EVENT, Phase.STREAM),
    Row("garbage in an event",
        lambda d: stream(d.begin(), d.text("Hel"), "data: {oops\n\n"),
        FaultKind.BAD_JSON, Phase.STREAM, True),
    Row("an event that is no object",
        lambda d: stream(d.begin(), "data: 7\n\n"), FaultKind.BAD_JSON, Phase.STREAM),
    Row("a connection cut by a reset in the middle",
        lambda d: [head(), part(d.begin()), part(d.text("Hel")), Act.RESET],
        FaultKind.CUT, Phase.STREAM, True),
    Row("a connection closed in the middle",
        lambda d: [head(), part(d.begin()), part(d.text("Hel")), Act.CLOSE],
        FaultKind.CUT, Phase.STREAM, True),
    Row("a document shorter than it said",
        lambda d: [whole(200, d.document("hello"))[:-20], Act.CLOSE], FaultKind.CUT, Phase.STREAM),
    Row("a connection reset before the answer",
        lambda d: [Act.RESET], FaultKind.RESET, Phase.FIRST_BYTE, status=None),
    Row("a connection closed before the answer",
        lambda d: [Act.CLOSE], FaultKind.RESET, Phase.FIRST_BYTE, status=None),
    Row("bytes that are no HTTP",
        lambda d: [b"SSH-2.0-Open\r\n\r\n", Act.CLOSE], FaultKind.RESET, Phase.FIRST_BYTE, status=None),
    Row("an answer without a word",
        lambda d: stream(d.begin(), d.finish(), d.end()), FaultKind.EMPTY_ANSWER, Phase.RESPONSE, True),
    Row("an answer of blanks",
        lambda d: stream(d.begin(), d.text(" \n"), d.finish(), d.end()),
        FaultKind.EMPTY_ANSWER, Phase.RESPONSE, True),
    Row("an answer that the output limit ended",
        lambda d: stream(d.begin(), d.text("Hel"), d.length_finish(), d.end()),
        FaultKind.TRUNCATED_ANSWER, Phase.RESPONSE, True),
    Row("a tool call that the output limit ended",
        lambda d: stream(d.begin(), d.call('{"path": "/et'), d.length_finish(), d.end()),
        FaultKind.TRUNCATED_TOOL_CALL, Phase.RESPONSE, True),
    Row("a whole tool call after which the output limit struck",
        lambda d: stream(d.begin(), d.call('{"path": "/etc"}'), d.length_finish(), d.end()),
        FaultKind.TRUNCATED_TOOL_CALL, Phase.RESPONSE, True),
    Row("half a tool call that is called finished",
        lambda d: stream(d.begin(), d.call('{"path": "/et'), d.tool_finish(), d.end()),
        FaultKind.TRUNCATED_TOOL_CALL, Phase.RESPONSE, True),
    Row("half a tool call at a clean end",
        lambda d: stream(d.begin(), d.call('{"path": "/et')), FaultKind.ENDED_EARLY, Phase.STREAM, True),
    Row("half a tool call at a cut",
        lambda d: [head(), part(d.begin()), part(d.call('{"path": "/et')), Act.CLOSE],
        FaultKind.CUT, Phase.STREAM, True),
    Row("a compressed answer that is none",
        lambda d: [whole(200, b"no gzip", "text/event-stream", {"Content-Encoding": "gzip"})],
        FaultKind.BAD_JSON, Phase.RESPONSE),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.says)
async def test_no_wrong_answer_passes_silently(dialect: Dialect, row: Row) -> None:
    facts = await fails(dialect, row.script(dialect))
    assert (facts.kind, facts.phase) == (row.kind, row.phase)
    assert facts.tokens_seen is row.tokens_seen
    assert facts.status == row.status


async def test_an_error_event_is_told_in_the_upstreams_words(dialect: Dialect) -> None:
    facts = await fails(dialect, stream(dialect.begin(), dialect.error_event()))
    expected = {"openai": ("server_error", "boom", "The server had an error"),
                "anthropic": ("overloaded_error", None, "Overloaded")}
    assert (facts.type, facts.code, facts.message) == expected[dialect.name]


async def test_a_truncated_answer_keeps_what_was_said(dialect: Dialect) -> None:
    facts = await fails(dialect, stream(dialect.begin(), dialect.text("Hel"), dialect.length_finish()))
    assert isinstance(facts.body, dict)
    assert facts.body["partial_text"] == "Hel"


async def test_an_answer_beyond_its_bound_is_refused(dialect: Dialect) -> None:
    script = [head(), part(dialect.begin()), *[part(dialect.text("x" * 1_000))] * 100, END]
    facts = await fails(dialect, script, max_response_bytes=50_000)
    assert facts.kind is FaultKind.WRONG_TYPE
    assert "50000 bytes" in facts.message
