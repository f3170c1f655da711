"""The classifier: given corpus, one example per rule, disguises, totality."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.core.failures import CallContext, FailureFacts, FaultKind, Reason, Verdict
from hermes.policy.classify import RULES, classify, facts_from_record

DATA = Path(__file__).parents[2] / "data" / "errors"
NOW = 1_800_000_000.0
NEVER_RETRYABLE = {
    Reason.BILLING,
    Reason.AUTH_PERMANENT,
    Reason.PROVIDER_POLICY_BLOCKED,
    Reason.MODEL_NOT_FOUND,
    Reason.FORMAT_ERROR,
}


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / name).read_text(encoding="utf-8").splitlines()]


def verdict_of(**record: Any) -> Verdict:
    return classify(*facts_from_record(record))


def test_given_corpus_is_read_right_in_98_percent() -> None:
    corpus = rows("provider.jsonl")
    verdicts = [verdict_of(**row) for row in corpus]
    wrong = [
        (row["id"], row["label"], v.reason, v.rule)
        for row, v in zip(corpus, verdicts, strict=True)
        if v.reason != row["label"]
    ]
    flags = [row["id"] for row, v in zip(corpus, verdicts, strict=True) if v.retryable != row["retryable"]]
    sys.stdout.write(
        f"reasons right: {len(corpus) - len(wrong)} of {len(corpus)}; retryable wrong: {flags}\n"
    )
    assert len(corpus) == 160
    assert len(wrong) <= 0.02 * len(corpus), wrong
    assert not flags


@pytest.mark.parametrize(
    "row",
    [*rows("written.jsonl"), *rows("fresh.jsonl"), *rows("second.jsonl")],
    ids=lambda row: row["id"],
)
def test_written_corpus_keeps_its_reading(row: dict[str, Any]) -> None:
    verdict = verdict_of(**row)
    assert (verdict.reason, verdict.retryable) == (row["label"], row["retryable"])


@pytest.mark.parametrize("name", ["provider.jsonl", "written.jsonl", "fresh.jsonl", "second.jsonl"])
def test_what_a_person_or_a_rewrite_must_cure_is_never_called_retryable(name: str) -> None:
    for row in rows(name):
        if row["label"] in NEVER_RETRYABLE:
            assert not verdict_of(**row).retryable, row["id"]


def in_other_dress(row: dict[str, Any], dress: str) -> dict[str, Any]:
    """The same failure as another client, proxy or log reports it."""
    status, body = row["status"], row["body"]
    text = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)
    said = "" if status is None else str(status)
    match dress:
        case "text of the JSON":
            return {**row, "body": text}
        case "a message of an SDK" if said:
            return {**row, "status": None, "exception": None, "body": f"Error code: {said} - {body!r}"}
        case "a line of a client" if said:
            return {**row, "status": None, "body": f"API Error: {said} {text}"}
        case "a router's raw metadata" if said:
            raw = {"raw": text, "provider_name": "X"}
            wrapped = {"message": "Provider returned error", "code": status, "metadata": raw}
            return {**row, "body": {"error": wrapped}}
        case "a message within an error":
            return {**row, "body": {"error": {"message": text}}}
        case "without headers, class and provider":
            return {**row, "headers": {}, "exception": None, "provider": "custom"}
    return row


@pytest.mark.parametrize(
    "dress",
    [
        "text of the JSON",
        "a message of an SDK",
        "a line of a client",
        "a router's raw metadata",
        "a message within an error",
        "without headers, class and provider",
    ],
)
def test_a_failure_means_the_same_in_another_dress(dress: str) -> None:
    corpus = rows("provider.jsonl")
    read = [(row, verdict_of(**in_other_dress(row, dress))) for row in corpus]
    wrong = [(row["id"], row["label"], v.reason, v.rule) for row, v in read if v.reason != row["label"]]
    assert len(wrong) <= 0.02 * len(corpus), wrong


def test_every_rule_has_exactly_one_example_in_order() -> None:
    assert [row["rule"] for row in rows("rule_examples.jsonl")] == [rule.name for rule in RULES]


@pytest.mark.parametrize("row", rows("rule_examples.jsonl"), ids=lambda row: row["rule"])
def test_each_rule_is_the_first_to_match_its_example(row: dict[str, Any]) -> None:
    facts, context = facts_from_record(row)
    if row["kind"] is not None:
        facts = replace(facts, kind=FaultKind(row["kind"]))
    assert classify(facts, context).rule == row["rule"]


def test_rule_names_are_unique() -> None:
    names = [rule.name for rule in RULES]
    assert len(names) == len(set(names))


OVERFLOW = {
    "error": {
        "message": "This model's maximum context length is 8192 tokens. However, your messages "
        "resulted in 9000 tokens.",
        "code": "context_length_exceeded",
    }
}


@pytest.mark.parametrize(
    "body",
    [
        OVERFLOW,
        [OVERFLOW],
        json.dumps(OVERFLOW),
        json.dumps(OVERFLOW).encode(),
        f"litellm.BadRequestError: OpenAIException - {json.dumps(OVERFLOW)}. Received Model Group=x",
        f"Error code: 400 - {OVERFLOW!r}",
        f"Exception - b'{json.dumps(OVERFLOW)}'",
        {"error": {"message": json.dumps(OVERFLOW), "code": 500}},
        {
            "error": {
                "message": "Provider returned error",
                "code": 400,
                "metadata": {"raw": json.dumps(OVERFLOW)},
            }
        },
        {
            "error": {
                "message": "x",
                "metadata": {"raw": json.dumps({"error": {"message": json.dumps(OVERFLOW)}})},
            }
        },
        {"type": "error", "error": {"type": "request_fail", "upstream_error": OVERFLOW}},
        f"event: error\ndata: {json.dumps(OVERFLOW)}\n\n",
        json.dumps(OVERFLOW) + "（traceid: 1）",
        json.dumps(OVERFLOW)[:150],
        {"detail": [{"loc": ["body"], "msg": OVERFLOW["error"]["message"], "type": "value_error"}]},
    ],
    ids=range(15),
)
def test_an_overflow_is_recognised_in_every_disguise(body: object) -> None:
    for status in (200, 400, "400", 429, 500, None):
        verdict = verdict_of(provider="x", status=status, exception=None, headers={}, body=body)
        assert verdict.reason is Reason.CONTEXT_OVERFLOW, (status, verdict)


@pytest.mark.parametrize(
    ("status", "body", "reason"),
    [
        (400, "Unknown parameter: 'rate_limit_overloaded_billing_context_length'", Reason.FORMAT_ERROR),
        (
            400,
            {"error": {"message": "max_tokens: unexpected type", "type": "invalid_request_error"}},
            Reason.FORMAT_ERROR,
        ),
        (400, {"error": {"message": "Invalid schema: 'timeout' must be an object"}}, Reason.FORMAT_ERROR),
        (
            400,
            {"error": {"message": "messages[2].content: 'my credit balance' is not a list"}},
            Reason.FORMAT_ERROR,
        ),
        (400, {"error": {"message": "tools.3.name 'get_rate_limit' is reserved"}}, Reason.FORMAT_ERROR),
        (404, {"error": {"message": "model 'overloaded-timeout' not found"}}, Reason.MODEL_NOT_FOUND),
        (401, {"error": {"message": "model access token rejected"}}, Reason.AUTH),
        (429, {"error": {"message": "See billing and image and model pages for context"}}, Reason.RATE_LIMIT),
        (500, {"error": {"message": "model image billing token context"}}, Reason.SERVER_ERROR),
    ],
)
def test_a_bare_word_never_decides(status: int, body: object, reason: Reason) -> None:
    assert verdict_of(provider="x", status=status, body=body).reason is reason


def test_a_refusal_without_reason_is_an_overflow_only_when_the_measured_prompt_fills_the_window() -> None:
    record = {"provider": "x", "status": 400, "body": "400 status code (no body)"}
    full = {"prompt_tokens": 95_000, "context_window": 100_000}
    small = {"prompt_tokens": 5_000, "context_window": 100_000}
    assert verdict_of(**record, context=full).reason is Reason.CONTEXT_OVERFLOW
    assert verdict_of(**record, context=small).reason is Reason.UNKNOWN
    assert verdict_of(**record).reason is Reason.UNKNOWN


def test_a_402_with_a_short_wait_is_a_throttle_and_with_a_long_one_a_bill() -> None:
    body = {"error": {"message": "Payment pending", "code": 402}}
    assert (
        verdict_of(provider="x", status=402, headers={"Retry-After": "30"}, body=body).reason
        is Reason.RATE_LIMIT
    )
    assert (
        verdict_of(provider="x", status=402, headers={"Retry-After": "90000"}, body=body).reason
        is Reason.BILLING
    )
    assert verdict_of(provider="x", status=402, headers={}, body=body).reason is Reason.BILLING


STATED_LIMITS: list[Any] = [
    ("prompt is too long: 208310 tokens > 200000 maximum", None, 200_000, 208_310),
    (
        "input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000, decrease",
        "output_cap",
        21_041,
        64_000,
    ),
    (
        "This model's maximum context length is 16384 tokens. However, you requested 19591 tokens "
        "(9591 in the messages, 10000 in the completion).",
        "output_cap",
        6_793,
        10_000,
    ),
    (
        "max_tokens: 64000 > 8192, which is the maximum allowed number of output tokens for x",
        "output_cap",
        8_192,
        64_000,
    ),
    (
        "max_tokens is too large: 100000. This model supports at most 16384 completion tokens",
        "output_cap",
        16_384,
        100_000,
    ),
    ("Range of max_tokens should be [1, 8192]", "output_cap", 8_192, None),
    (
        "You requested up to 32000 tokens, but can only afford 27342, or fewer max_tokens",
        "affordable",
        27_342,
        32_000,
    ),
    (
        {
            "error": {
                "type": "exceed_context_size_error",
                "message": "request (3031 tokens) exceeds the available context size (1024 tokens)",
                "n_prompt_tokens": 3031,
                "n_ctx": 1024,
            }
        },
        None,
        1_024,
        3_031,
    ),
    ("image exceeds 5 MB maximum: 6500712 bytes > 5242880 bytes", "bytes", 5_242_880, 6_500_712),
    ("At least one of the image dimensions exceed max allowed size: 8000 pixels", "pixels", 8_000, None),
    (
        "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 342389.",
        "allowance",
        30_000,
        342_389,
    ),
    (
        "The input token count (1200293) exceeds the maximum number of tokens allowed (1048576).",
        None,
        1_048_576,
        1_200_293,
    ),
]


@pytest.mark.parametrize(("body", "detail", "limit", "requested"), STATED_LIMITS)
def test_stated_limits_are_read(body: object, detail: str | None, limit: int, requested: int | None) -> None:
    verdict = verdict_of(provider="x", status=400, body=body)
    assert (verdict.detail, verdict.limit, verdict.requested) == (detail, limit, requested)


def test_waits_reach_the_verdict_with_the_clock_of_the_context() -> None:
    record = {
        "provider": "x",
        "status": 429,
        "headers": {"Retry-After": "Fri, 15 Jan 2027 08:01:00 GMT"},
        "body": "",
    }
    verdict = verdict_of(**record, context={"now": NOW})
    assert verdict.retry_after == 60.0
    assert verdict.reset_at == NOW + 60.0
    assert verdict_of(**record).retry_after is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(
            st.sampled_from(
                [
                    "error",
                    "message",
                    "code",
                    "type",
                    "status",
                    "metadata",
                    "raw",
                    "headers",
                    "retry_after",
                    "detail",
                ]
            )
            | st.text(max_size=8),
            inner,
            max_size=5,
        )
    ),
    max_leaves=25,
)
FRAGMENTS = st.lists(
    st.sampled_from(
        [
            '{"error":',
            "{'a':",
            "b'",
            "}",
            "]",
            "[",
            '\\"',
            '"',
            "try again in ",
            "1e999",
            "-5",
            "s",
            "429 ",
            "<html>",
            "tokens",
            "exceeds",
            "context length",
            "limit: ",
            "\x00",
            "٣",
            "²",
        ]
    )
    | st.text(max_size=6),
    max_size=30,
).map("".join)


@given(
    st.dictionaries(
        st.sampled_from(["id", "provider", "status", "exception", "headers", "body", "context", "model"]),
        JSON | FRAGMENTS,
    )
)
def test_classification_is_total_on_any_record(record: dict[str, Any]) -> None:
    verdict = verdict_of(**record)
    assert verdict.reason in Reason
    assert verdict.retry_after is None or 0.0 <= verdict.retry_after < float("inf")


@given(st.sampled_from(FaultKind), JSON | FRAGMENTS, FRAGMENTS, st.none() | st.integers(), JSON)
def test_classification_is_total_on_any_facts(
    kind: FaultKind, body: object, message: str, status: int | None, headers: Any
) -> None:
    facts = FailureFacts(
        kind=kind,
        body=body,
        message=message,
        status=status,
        code=message or None,
        headers=headers if isinstance(headers, dict) else {},
        exception=message,
        causes=(message,),
    )
    assert classify(facts, CallContext(prompt_tokens=1, context_window=1, now=NOW)).rule


@given(st.text(alphabet="{[('\\\" ", max_size=5000))
def test_hostile_brackets_cost_bounded_work(text: str) -> None:
    assert verdict_of(body=text * 8, status=400).reason in Reason
