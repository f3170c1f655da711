"""Which requests are Slack's, and the manifest that makes it call."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from pathlib import Path
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.platforms.slack.config import SlackMode
from hermes.platforms.slack.manifest import EVENTS, EVERYDAY, SCOPES, manifest
from hermes.platforms.slack.requests import Brought, Challenge, Forged, Requests

SECRET, NOW = "8f742231b10e8888abcd99yyyzzz85a5", 1_700_000_000.0
FORM = "application/x-www-form-urlencoded"


def signed(body: str, at: float = NOW, kind: str = "application/json", secret: str = SECRET) -> dict[str, str]:
    stamp = str(int(at))
    digest = hmac.new(secret.encode(), f"v0:{stamp}:{body}".encode(), hashlib.sha256).hexdigest()
    return {"X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": f"v0={digest}", "Content-Type": kind}


def read(body: str, headers: dict[str, str]) -> Brought | Challenge | Forged:
    return Requests(SECRET, lambda: NOW).read(headers, body.encode())


def test_a_signed_event_an_interaction_and_a_command_are_read_as_what_they_are() -> None:
    event = json.dumps({"type": "event_callback", "event": {"type": "message"}})
    assert read(event, signed(event)) == Brought("events_api", json.loads(event))
    press = urlencode({"payload": json.dumps({"type": "block_actions"})})
    assert read(press, signed(press, kind=FORM)) == Brought("interactive", {"type": "block_actions"})
    command = urlencode({"command": "/hermes", "text": "ä & b", "token": ""})
    found = read(command, signed(command, kind=f"{FORM}; charset=utf-8"))
    assert found == Brought("slash_commands", {"command": "/hermes", "text": "ä & b", "token": ""})


def test_the_question_whether_the_address_is_ours_is_answered_only_when_it_is_signed() -> None:
    body = json.dumps({"type": "url_verification", "challenge": "3eZbrw1aB"})
    assert read(body, signed(body)) == Challenge("3eZbrw1aB")
    assert isinstance(read(body, {}), Forged)


@pytest.mark.parametrize("age", [-301, 301, -10**9, 10**9])
def test_a_signature_is_good_for_five_minutes(age: int) -> None:
    assert isinstance(read("{}", signed("{}", NOW + age)), Forged)
    assert isinstance(read("{}", signed("{}", NOW + (299 if age > 0 else -299))), Brought)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-Slack-Signature": "v0=0"},
        signed("{}", secret="another"),
        signed("{ }"),
        {**signed("{}"), "X-Slack-Request-Timestamp": "soon"},
        {**signed("{}"), "X-Slack-Request-Timestamp": "²"},
        {**signed("{}"), "X-Slack-Signature": "v0=ä"},
    ],
)
def test_what_is_not_signed_by_slack_is_forged(headers: dict[str, str]) -> None:
    assert isinstance(read("{}", headers), Forged)


@given(st.binary(max_size=60), st.sampled_from(["application/json", FORM, ""]))
def test_any_body_is_read_without_a_fault(body: bytes, kind: str) -> None:
    text = body.decode("latin-1")
    headers = signed(text, kind=kind)
    assert isinstance(Requests(SECRET, lambda: NOW).read(headers, body), Brought | Challenge | Forged)
    assert isinstance(read(text, headers), Brought | Challenge | Forged)


def test_the_manifest_asks_for_what_is_used_and_says_where_to_call() -> None:
    socket, http = manifest(SlackMode.SOCKET), manifest(SlackMode.HTTP, address="https://h/hooks/slack")
    assert socket["settings"]["socket_mode_enabled"] is True
    assert "request_url" not in json.dumps(socket)
    assert json.dumps(http).count("https://h/hooks/slack") == 3
    assert http["settings"]["socket_mode_enabled"] is False
    assert set(EVENTS) <= set(socket["settings"]["event_subscriptions"]["bot_events"])
    assert {"chat:write", "commands", "im:history", "channels:history", "files:read", "users:read"} <= set(SCOPES)
    assert 1 <= len(socket["features"]["slash_commands"][0]["usage_hint"]) <= 1000


def test_the_commands_in_the_hint_are_commands() -> None:
    sources = Path(__file__).resolve().parents[3] / "hermes" / "gateway"
    text = "".join(path.read_text("utf-8") for path in sources.glob("*.py"))
    assert set(EVERYDAY) <= set(re.findall(r'CommandSpec\(\s*"(\w+)"', text))
