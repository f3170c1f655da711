"""Honest health (promise 8): each line is measured or says "not checked"; readiness names its reasons."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from hermes import __version__
from hermes.core.clock import Clock
from hermes.core.door import Health, HealthItem, Light
from hermes.core.failures import Verdict
from hermes.core.governor import Circuit, UpstreamView
from hermes.core.links import Link, LinkState
from hermes.core.records import StoreFigures
from hermes.core.stores import Sessions
from hermes.policy.reconnect import sentence as link_sentence
from hermes.policy.sentences import sentence as model_sentence

NO_MODEL = (
    "no model is configured: the built-in rehearsal answers by script. Set OPENAI_API_KEY, ANTHROPIC_API_KEY or "
    "OPENROUTER_API_KEY, or name a server under model: and providers: in config.yaml, then restart"
)


_NAMED_CHATS = 5


@dataclass(slots=True)
class HealthSettings:
    """Bounds of readiness: ages in seconds, disk in bytes."""

    max_queue_age: float = 300.0
    disk_floor: int = 64 * 1024 * 1024
    stall_after: float = 90.0


@dataclass(slots=True)
class HealthSources:
    """Where the figures come from; each is a cheap read of something measured elsewhere."""

    home: Path
    sessions: Sessions
    links: Callable[[], Iterable[Link]]
    targets: Callable[[], Iterable[str]]
    upstreams: Callable[[], dict[str, tuple[float, Verdict | None]]]
    lag: Callable[[], float]
    output_lost: Callable[[], int]
    running: Callable[[], int]
    draining: Callable[[], bool]
    started: Callable[[], bool]
    rehearsing: Callable[[], Collection[str]] = frozenset
    """The targets that are no model."""
    dead_chats: Callable[[], Mapping[tuple[str, str, str], str]] = dict
    """Retired chats and why."""
    guards: Callable[[], Mapping[str, UpstreamView]] = dict
    """What the governor knows of each target that was called."""


class HealthBook:
    """Composes health, at most once a second."""

    def __init__(self, sources: HealthSources, clock: Clock, settings: HealthSettings) -> None:
        self.sources = sources
        self._clock = clock
        self.settings = settings
        self._cached: Health | None = None
        self._cached_at = -1e9

    async def health(self) -> Health:
        """Measured now, or at most a second ago."""
        now = self._clock.monotonic()
        if self._cached is None or now - self._cached_at >= 1.0:
            self._cached = await self._measure()
            self._cached_at = now
        return self._cached

    async def _measure(self) -> Health:
        figures = await self.sources.sessions.figures()
        now = self._clock.now()
        not_ready: list[str] = []
        items = [
            *self._platforms(now, not_ready),
            *self._guarded(self._models(now)),
            *self._dead_chats(),
            self._queues(figures, now, not_ready),
            self._loop(not_ready),
            self._disk(not_ready),
        ]
        if self.sources.draining():
            not_ready.append("draining: the gateway is shutting down")
        started = self.sources.started()
        if not started:
            not_ready.append("starting")
        return Health(tuple(items), tuple(not_ready), started, __version__, str(self.sources.home))

    def _platforms(self, now: float, not_ready: list[str]) -> Iterable[HealthItem]:
        for link in self.sources.links():
            if link.state is LinkState.UP:
                light = Light.OK
            elif link.state in (LinkState.STARTING, LinkState.RETRYING):
                light = Light.UNCHECKED if link.state is LinkState.STARTING else Light.WARN
            else:
                light = Light.BAD
                not_ready.append(f"{link.platform}: {link.state.value}")
            quiet = None if link.last_cycle_at is None else round(now - link.last_cycle_at, 1)
            text = link_sentence(link, now=now)
            if light is Light.OK and quiet is not None and quiet > self.settings.stall_after:
                light, text = Light.BAD, f"{text[:-1]}, and nothing came from there for {quiet:.0f} s."
                not_ready.append(f"{link.platform}: no receive cycle completed for {quiet:.0f} s")
            yield HealthItem(
                f"platform {link.platform}", light, text,
                {"state": link.state.value, "receive_age_seconds": quiet, "failures": link.failures},
            )  # fmt: skip

    def _dead_chats(self) -> Iterable[HealthItem]:
        """Chats that were given up, the newest ones by name; they heal by themselves, so nothing is unready."""
        dead = self.sources.dead_chats()
        if dead:
            named = "; ".join(f"{key[0]} {key[2]}: {reason}" for key, reason in list(dead.items())[-_NAMED_CHATS:])
            text = f"{len(dead)} closed to us until somebody writes from there. {named}"
            yield HealthItem("chats", Light.WARN, text, {"retired": len(dead)})

    def _models(self, now: float) -> Iterable[HealthItem]:
        last = self.sources.upstreams()
        rehearsing = self.sources.rehearsing()
        for target in self.sources.targets():
            if target in rehearsing and (target not in last or last[target][1] is None):
                yield HealthItem(f"model {target}", Light.WARN, NO_MODEL, {"reason": "rehearsal"})
                continue
            if target not in last:
                yield HealthItem(f"model {target}", Light.UNCHECKED, "not checked: no call has been made yet")
                continue
            at, verdict = last[target]
            ago = f"{now - at:.0f} s ago"
            provider, _, model = target.partition("/")
            if verdict is None:
                yield HealthItem(f"model {target}", Light.OK, f"answered {ago}", {"at": at, "reason": "ok"})
            else:
                text = f"{model_sentence(verdict, provider=provider, model=model)} (last call {ago})"
                yield HealthItem(
                    f"model {target}", Light.BAD, text,
                    {"at": at, "reason": verdict.reason.value, "detail": verdict.detail},
                )  # fmt: skip

    def _guarded(self, models: Iterable[HealthItem]) -> Iterable[HealthItem]:
        """Adds circuit, block and rate; a model that may not be called now is no green light."""
        views = self.sources.guards()
        for item in models:
            view = views.get(item.name.removeprefix("model "))
            if view is None:
                yield item
                continue
            light, text = item.light, item.sentence
            if view.circuit is not Circuit.CLOSED:
                light = Light.BAD
                when = f"in {view.opens_in:.0f} s" if view.opens_in else "by the next call"
                text += f"; out of reach, tried again {when}"
            elif view.blocked_for:
                light = Light.WARN if light is Light.OK else light
                text += f"; not called for {view.blocked_for:.0f} s, its limit is reached"
            if view.waiting:
                text += f"; {view.waiting} calls wait"
            yield replace(item, light=light, sentence=text, figures={
                **item.figures, "circuit": view.circuit.value, "blocked_for_seconds": round(view.blocked_for, 1),
                "opens_in_seconds": round(view.opens_in, 1), "calls_per_minute": view.calls_per_minute,
                "concurrency": view.concurrency, "in_flight": view.in_flight, "waiting": view.waiting,
            })  # fmt: skip

    def _queues(self, f: StoreFigures, now: float, not_ready: list[str]) -> HealthItem:
        light = Light.OK
        for name, oldest in (("inbox", f.inbox_oldest_at), ("outbox", f.outbox_oldest_at)):
            age = 0.0 if oldest is None else now - oldest
            if age > self.settings.max_queue_age:
                light = Light.BAD
                not_ready.append(f"the oldest {name} row is {age:.0f} s old")
        waiting = f.outbox_held + f.outbox_failed + f.dead_letters
        text = f"{f.inbox_new + f.inbox_claimed} in work, {f.outbox_pending} to be delivered"
        if waiting:
            light = Light.WARN if light is Light.OK else light
            text += f", {waiting} dead letters (`hermes dead-letters list`)"
        return HealthItem(
            "queues", light, text,
            {
                "inbox_new": f.inbox_new, "inbox_claimed": f.inbox_claimed, "outbox_pending": f.outbox_pending,
                "outbox_held": f.outbox_held, "outbox_failed": f.outbox_failed, "dead_letters": f.dead_letters,
                "suspended_turns": f.suspended_turns, "sessions": f.sessions,
                "inbox_oldest_seconds": None if f.inbox_oldest_at is None else round(now - f.inbox_oldest_at, 1),
                "outbox_oldest_seconds": None if f.outbox_oldest_at is None else round(now - f.outbox_oldest_at, 1),
                "running_turns": self.sources.running(),
            },
        )  # fmt: skip

    def _loop(self, not_ready: list[str]) -> HealthItem:
        lag = self.sources.lag()
        lost = self.sources.output_lost()
        light = Light.OK if lag < 1.0 else Light.BAD
        if lag >= 5.0:
            not_ready.append(f"the event loop is {lag:.1f} s behind")
        text = f"lag {lag * 1000:.0f} ms" + (f", {lost} log lines lost" if lost else "")
        return HealthItem("loop", light, text, {"lag_seconds": round(lag, 4), "output_lost": lost})

    def _disk(self, not_ready: list[str]) -> HealthItem:
        free = free_bytes(self.sources.home)
        if free >= self.settings.disk_floor:
            return HealthItem("disk", Light.OK, f"{free // 2**20} MiB free", {"free_bytes": free})
        floor = self.settings.disk_floor // 2**20
        text = f"only {free // 2**20} MiB free: nothing new is taken in below {floor} MiB (gateway.disk_floor)"
        not_ready.append(f"disk: {text}")
        return HealthItem("disk", Light.BAD, text, {"free_bytes": free})

    def has_room(self) -> bool:
        """Whether there is disk enough to take anything in (R35)."""
        return free_bytes(self.sources.home) >= self.settings.disk_floor


def free_bytes(home: Path) -> int:
    """What an ordinary user may still write on the home's file system."""
    stat = os.statvfs(home)
    return stat.f_bavail * stat.f_frsize


def as_dict(health: Health) -> dict[str, object]:
    """For ``--json``, ``/readyz`` and the page."""
    return {
        "ready": not health.not_ready,
        "not_ready": list(health.not_ready),
        "started": health.started,
        "version": health.version,
        "home": health.home,
        "items": [
            {"name": i.name, "light": i.light.value, "sentence": i.sentence, "figures": dict(i.figures)}
            for i in health.items
        ],
    }
