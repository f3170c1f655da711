"""Grants that a client of the control socket holds: it calls a model itself, admitted by our governor (R33).

    → {"op": "admit", "target": "main/some-model", "tokens": 1200, "wait": 60}
    ← {"result": {"grant": 1}}          or {"result": {"refused": "circuit", "retry_after": 12.5}}
    → {"op": "settle", "grant": 1, "ok": true, "headers": {…}}
    → {"op": "settle", "grant": 1, "failure": {"status": 429, "headers": {…}, "body": …}}

``failure`` is a record as ``hermes explain error`` reads it. A client that goes away gives all its grants back.
"""

from __future__ import annotations

import itertools
from typing import Any

from hermes.core.governor import Admissions, CallRequest, Granted, Refused
from hermes.core.urgency import Urgency
from hermes.policy.classify import classify, facts_from_record

LONGEST_WAIT = 600.0


class Held:
    """The grants of one connection."""

    def __init__(self) -> None:
        self._grants: dict[int, Granted] = {}
        self._numbers = itertools.count(1)

    async def admit(self, admissions: Admissions, request: dict[str, Any]) -> dict[str, object]:
        """Waits up to ``wait`` seconds (60) for permission. Raises KeyError, ValueError for a bad request."""
        wait = min(max(_number(request, "wait", 60.0), 0.0), LONGEST_WAIT)
        urgency = Urgency[str(request.get("urgency", "interactive")).upper()]
        asked = CallRequest(
            str(request["target"]), max(0, int(_number(request, "tokens", 0.0))), urgency, "owner", wait, wait
        )
        granted = await admissions.enter(asked)
        if isinstance(granted, Refused):
            return {"refused": granted.guard.value, "retry_after": granted.verdict.retry_after,
                    "reason": granted.verdict.reason.value}  # fmt: skip
        number = next(self._numbers)
        self._grants[number] = granted
        return {"grant": number}

    def settle(self, request: dict[str, Any]) -> dict[str, object]:
        """How the call ended. Raises ValueError for a grant that this client does not hold."""
        granted = self._grants.pop(int(_number(request, "grant", 0.0)), None)
        if granted is None:
            raise ValueError("no such grant is held by this client")
        failure = request.get("failure")
        if failure is not None:
            verdict = classify(*facts_from_record(failure if isinstance(failure, dict) else {"body": failure}))
            granted.failed(verdict)
            return {"reason": verdict.reason.value}
        headers = request.get("headers")
        named = {str(k).lower(): str(v) for k, v in headers.items()} if isinstance(headers, dict) else None
        granted.succeeded(named)
        return {"reason": "ok"}

    def release(self) -> None:
        """The client is gone: what it held goes back."""
        while self._grants:
            self._grants.popitem()[1].abandon()


def _number(request: dict[str, Any], key: str, default: float) -> float:
    value = request.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e12:
        raise ValueError(f"{key}: {value!r} is not a number in range")
    return float(value)
