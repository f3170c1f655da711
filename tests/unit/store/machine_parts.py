"""Parts of the store's state machine: what a process knows of a chat, and what makes a transcript legal."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from hermes.core.ids import SessionId
from hermes.core.records import Claim
from hermes.core.transcript import AssistantItem, Item, ToolResultItem, UserItem

__all__ = ["Lane", "asked", "check_legal", "done", "idle", "running", "without_rows"]

T = TypeVar("T")


def done(coro: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that never waits: the inline database runs on the caller's stack."""
    try:
        coro.send(None)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    coro.close()
    raise AssertionError("the inline database waited for something")


@dataclass
class Lane:
    """What the process knows of a chat: gone after a crash."""

    session: SessionId
    claim: Claim | None = None
    step: int = 1
    asked: bool = False
    rows: list[int] = field(default_factory=list)


def idle(lane: Lane) -> bool:
    return lane.claim is None


def running(lane: Lane) -> bool:
    return lane.claim is not None


def asked(lane: Lane) -> bool:
    return lane.claim is not None and lane.asked


def without_rows(claim: Claim) -> Claim:
    return replace(claim, rows=())


def check_legal(items: Sequence[Item]) -> None:
    """Each call has at most one result, before anything else is said (DESIGN promise 6)."""
    waiting: set[str] = set()
    for item in items:
        match item:
            case ToolResultItem():
                assert item.call_id in waiting, "a result without its call, or a second one"
                waiting.discard(item.call_id)
            case AssistantItem():
                assert not waiting
                waiting = {c.call_id for c in item.tool_calls}
            case UserItem():
                assert not waiting, "words between a call and its result"
