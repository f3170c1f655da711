"""Every form in which a secret comes out."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.runtime.redaction import MARK, SHORTEST, Redactor

SECRET = 'pä ss/w+o"rd\\1&=%'


@pytest.mark.parametrize(
    "text",
    [
        SECRET,
        quote(SECRET, safe=""),
        quote(SECRET),
        quote_plus(SECRET),
        json.dumps({"a": SECRET}),
        json.dumps({"a": SECRET}, ensure_ascii=False),
        json.dumps(json.dumps({"a": SECRET})),
        repr(ValueError(SECRET)),
        repr(SECRET.encode()),
    ],
)
def test_a_registered_secret_is_hidden_in_each_form(text: str) -> None:
    redactor = Redactor()
    redactor.register(SECRET)
    hidden = redactor.redact(f"before {text} after")
    assert MARK in hidden
    assert "w+o" not in hidden
    assert "ss%2Fw" not in hidden
    assert hidden.startswith("before ")
    assert hidden.endswith(" after")


@given(
    secret=st.binary(min_size=8, max_size=40).map(lambda raw: base64.b32encode(raw).decode().rstrip("=")),
    before=st.binary(max_size=5),
    after=st.binary(max_size=5),
    urlsafe=st.booleans(),
)
def test_a_secret_inside_any_base64_text_is_hidden(
    secret: str, before: bytes, after: bytes, urlsafe: bool
) -> None:
    redactor = Redactor()
    redactor.register(secret)
    encode = base64.urlsafe_b64encode if urlsafe else base64.b64encode
    hidden = redactor.redact(encode(before + secret.encode() + after).decode())
    assert MARK in hidden
    kept = hidden.replace(MARK, "")
    assert len(kept) <= 4 * (len(before) + len(after) + 4)


@given(st.text(max_size=200))
def test_text_without_a_secret_is_the_same_object(text: str) -> None:
    redactor = Redactor()
    redactor.register("a-secret-that-is-not-there")
    assert redactor.redact(text) is text or MARK in redactor.redact(text)


def test_short_and_repeated_secrets_change_nothing() -> None:
    redactor = Redactor()
    redactor.register("x" * (SHORTEST - 1))
    assert redactor.redact("xxxxx") == "xxxxx"
    redactor.register("longer-secret")
    redactor.register("longer-secret")
    assert redactor.redact("longer-secret") == MARK


def test_a_secret_that_contains_another_leaves_no_rest() -> None:
    redactor = Redactor()
    redactor.register("secret-one")
    redactor.register("secret-one-and-more")
    assert redactor.redact("<secret-one-and-more>") == f"<{MARK}>"


@pytest.mark.parametrize(
    "text",
    [
        "https://api.example/bot123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw0/getMe",
        "token=123456789%3AAAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw0",
        "key sk-ant-api03-abcdefghijklmnop",
        "xoxb-1234567890-abcdef",
        "xapp-1-A0B1C2-1234567890",
        "Authorization: Bearer abc.def-123",
        "authorization: bearer abc.def-123",
        "MTIzNDU2Nzg5MDEyMzQ1Njc4.GabcdE.abcdefghijklmnopqrstuvwxyz0-_",
    ],
)
def test_tokens_of_known_shape_are_hidden_without_registration(text: str) -> None:
    assert MARK in Redactor().redact(text)


@pytest.mark.parametrize(
    "text",
    ["2026-12-01T01:02:03.123456Z", "10.0.0.1:8642", "task-sk-short", "Bearer of news", "1234567:short"],
)
def test_innocent_text_stays(text: str) -> None:
    assert Redactor().redact(text) == text
