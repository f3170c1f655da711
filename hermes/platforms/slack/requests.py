"""Events over HTTP: which requests are Slack's, and what they bring.

A request is Slack's when its signature over time and body was made with our signing secret, not more than five
minutes ago. Source: Slack's documentation, "Verifying requests from Slack".
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from slack_sdk.signature import Clock, SignatureVerifier


@dataclass(frozen=True, slots=True)
class Brought:
    """One envelope: ``kind`` as Socket Mode names it (events_api, interactive, slash_commands)."""

    kind: str
    payload: Any


@dataclass(frozen=True, slots=True)
class Challenge:
    """Slack asks whether the address is ours; the answer is this text."""

    text: str


@dataclass(frozen=True, slots=True)
class Forged:
    """Not Slack's, or too old, or not readable."""

    why: str


class _Wall(Clock):
    def __init__(self, wall: Callable[[], float]) -> None:
        self._wall = wall

    def now(self) -> float:
        return self._wall()


class Requests:
    """Reads requests; ``wall`` gives unix seconds."""

    def __init__(self, signing_secret: str, wall: Callable[[], float]) -> None:
        self._verifier = SignatureVerifier(signing_secret, _Wall(wall))

    def read(self, headers: Mapping[str, str], body: bytes) -> Brought | Challenge | Forged:
        """What a request is. Total."""
        told = {name.lower(): value for name, value in headers.items()}
        stamp, signature = told.get("x-slack-request-timestamp", ""), told.get("x-slack-signature", "")
        try:
            text = body.decode("utf-8")
            valid = stamp.isascii() and signature.isascii() and self._verifier.is_valid(text, stamp, signature)
        except ValueError:
            return Forged("the timestamp or the body is not readable")
        if not valid:
            return Forged("the signature is not ours, or is too old")
        return _contents(text, told.get("content-type", ""))


def _contents(text: str, kind: str) -> Brought | Challenge | Forged:
    try:
        if not kind.startswith("application/x-www-form-urlencoded"):
            payload = json.loads(text)
            if isinstance(payload, dict) and payload.get("type") == "url_verification":
                return Challenge(str(payload.get("challenge") or "")[:1000])
            return Brought("events_api", payload)
        form = dict(parse_qsl(text, keep_blank_values=True, max_num_fields=200))
        if "payload" in form:
            return Brought("interactive", json.loads(form["payload"]))
        return Brought("slash_commands", form)
    except (ValueError, RecursionError):
        return Forged("the body is not what Slack sends")
