"""``hermes explain error``: what a provider's or platform's error means, by the rules the gateway itself uses."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import assert_never

from hermes.cli.codes import FAILED, OK
from hermes.cli.invocation import Invocation
from hermes.cli.screen import console, table
from hermes.core.delivery import (
    Bury,
    Decision,
    Hold,
    Operation,
    SendAgain,
    SendMarked,
    SendPlain,
    Succeeded,
    WaitLink,
)
from hermes.core.errors import HermesError
from hermes.policy import delivery
from hermes.policy.classify import classify, facts_from_record
from hermes.policy.recovery import first_action

Answer = dict[str, object]


class Unreadable(HermesError):
    """The input cannot be read."""


def explain_file(file: Path, *, platform: bool, invocation: Invocation) -> int:
    """One answer for each line of ``file`` (``-``: standard input), in order; a line that is no object is told
    on standard error and makes the code 1. Raises Unreadable."""
    wrong: list[int] = []
    answers = (explain(record, platform=platform) for record in _records(_open(file), str(file), wrong))
    if invocation.json:
        for answer in answers:
            sys.stdout.write(json.dumps(answer, ensure_ascii=False) + "\n")
    else:
        _show(answers)
    return FAILED if wrong else OK


def explain_one(record: Mapping[str, object], *, platform: bool, invocation: Invocation) -> int:
    """The same for one error given on the command line."""
    answer = explain(record, platform=platform)
    if invocation.json:
        sys.stdout.write(json.dumps(answer, ensure_ascii=False) + "\n")
    else:
        _show([answer])
    return OK


def record(provider: str, status: int | None, exception: str | None, body: str | None) -> dict[str, object]:
    """The record of an error whose parts were given one by one; a body that is JSON is read as such."""
    parsed: object = body
    if body is not None:
        with contextlib.suppress(ValueError, RecursionError):
            parsed = json.loads(body)
    return {"provider": provider, "status": status, "exception": exception, "body": parsed}


def explain(record: Mapping[str, object], *, platform: bool) -> Answer:
    """``id, reason, detail, retryable, action, rule`` of one recorded error (CONTRACT, "Command line")."""
    if platform:
        return _platform(record)
    facts, context = facts_from_record(record)
    verdict = classify(facts, context)
    return {
        "id": record.get("id"),
        "reason": verdict.reason.value,
        "detail": verdict.detail,
        "retryable": verdict.retryable,
        "action": first_action(verdict),
        "rule": verdict.rule,
    }


def _platform(record: Mapping[str, object]) -> Answer:
    facts = delivery.facts_from_record(record)
    verdict = delivery.classify_delivery(facts)
    decision = delivery.decide(
        verdict, facts, attempt=0, operation=Operation.CREATE, nonce_enforced=False, u=0.0
    )
    return {
        "id": record.get("id"),
        "reason": verdict.reason.value,
        "detail": verdict.detail,
        "retryable": isinstance(decision, SendAgain),
        "action": _word(decision),
        "rule": verdict.rule,
    }


def _word(decision: Decision) -> str:
    """What the courier does with a new message that failed so, in a word."""
    match decision:
        case SendAgain():
            return "send_again"
        case SendMarked():
            return "send_marked"
        case SendPlain():
            return "send_plain"
        case WaitLink():
            return "wait_link"
        case Succeeded():
            return "succeeded"
        case Hold():
            return "hold"
        case Bury():
            return "bury"
        case _:
            assert_never(decision)


def _open(file: Path) -> Iterator[bytes]:
    if str(file) == "-":
        yield from sys.stdin.buffer
        return
    try:
        with file.open("rb") as lines:
            yield from lines
    except OSError as error:
        raise Unreadable(f"{file} cannot be read: {error.strerror or error}") from None


def _records(lines: Iterable[bytes], name: str, wrong: list[int]) -> Iterator[Mapping[str, object]]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            record = None
        if isinstance(record, dict):
            yield record
        else:
            wrong.append(number)
            sys.stderr.write(f"{name}:{number}: no JSON object; allowed: one object a line\n")


def _show(answers: Iterable[Answer]) -> None:
    lines = table("id", "reason", "retryable", "action", "rule")
    for one in answers:
        reason = f"{one['reason']}/{one['detail']}" if one["detail"] else str(one["reason"])
        named = "" if one["id"] is None else str(one["id"])
        lines.add_row(
            named, reason, "yes" if one["retryable"] else "no", str(one["action"]), str(one["rule"])
        )
    console().print(lines)
