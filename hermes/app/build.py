"""The composition root: every part is made here, once, and handed what it needs (DESIGN §2)."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from hermes.agent.pipeline import Pipeline, UpstreamBook
from hermes.agent.prompt import system_prompt
from hermes.agent.toolbox import Toolbox
from hermes.agent.turn import TurnLoop
from hermes.app import settings
from hermes.app.catalogue import make_platform, make_provider
from hermes.app.figures import Figures
from hermes.app.secrets import api_key
from hermes.config.environment import Environment
from hermes.config.model import Config
from hermes.core.clock import Clock
from hermes.core.door import LiveKind
from hermes.core.ids import SessionId
from hermes.core.links import Link
from hermes.core.ports import Provider, Tool
from hermes.core.records import Accepted, OutboxRow, StrangerCount
from hermes.gateway.actions import Actions
from hermes.gateway.commands import Commands
from hermes.gateway.courier import Courier
from hermes.gateway.dispatch import Dispatch, DispatchSettings
from hermes.gateway.door import Door
from hermes.gateway.health import HealthBook, HealthSettings, HealthSources
from hermes.gateway.ingest import AccessBook, Ingest
from hermes.gateway.lane import TurnLane
from hermes.gateway.links import Links
from hermes.gateway.live import LiveBus
from hermes.gateway.pacer import Pacer
from hermes.gateway.platform_book import PlatformBook
from hermes.gateway.questions import Questions
from hermes.gateway.replies import PlatformReplies
from hermes.gateway.sweep import Sweep
from hermes.gateway.view import Views
from hermes.platforms.web.adapter import WebPlatform, make_update
from hermes.providers.network import Network
from hermes.runtime.checkpoints import Checkpoints
from hermes.runtime.lag import LagMonitor
from hermes.runtime.logs import get_logger
from hermes.runtime.offload import Offload
from hermes.runtime.supervisor import Supervisor
from hermes.store.database import Database
from hermes.store.inbox import SqliteInbox
from hermes.store.outbox import SqliteOutbox
from hermes.store.questions import SqliteTurnsAndQuestions
from hermes.store.sessions import SqliteSessions
from hermes.tools.clarify import Clarify
from hermes.tools.files import ReadFile, SearchFiles
from hermes.tools.session_search import SessionSearch

log = get_logger(__name__)


@dataclass(slots=True)
class Machine:
    """What the process brings: made by ``run`` before anything of chat exists."""

    home: Path
    environment: Environment
    clock: Clock
    supervisor: Supervisor
    offload: Offload
    network: Network
    metrics: Figures
    lag: LagMonitor | None
    checkpoints: Checkpoints
    output_lost: Callable[[], int]
    escalate: Callable[[BaseException], None]
    random: Callable[[], float] = random.random


@dataclass(slots=True)
class Gateway:
    """All parts, wired and not started."""

    config: Config
    db: Database
    turns: SqliteTurnsAndQuestions
    sessions: SqliteSessions
    outbox: SqliteOutbox
    platforms: PlatformBook
    providers: dict[str, Provider]
    access: AccessBook
    ingest: Ingest
    dispatch: Dispatch
    lane: TurnLane
    courier: Courier
    sweep: Sweep
    pacer: Pacer
    links: Links
    questions: Questions
    replies: PlatformReplies
    views: Views
    runner: TurnLoop
    toolbox: Toolbox
    bus: LiveBus
    health: HealthBook
    door: Door
    actions: Actions
    draining: bool = False
    started: bool = False


def make_providers(config: Config, machine: Machine) -> dict[str, Provider]:
    """The providers that targets name; others are not loaded (no SDK is imported for nothing)."""
    named = {config.model.provider, *(f.provider for f in config.fallback_providers)}
    return {
        name: make_provider(
            name, config.providers[name], api_key(name, config.providers[name], machine.environment.variables),
            machine.network,
        )
        for name in sorted(named)
    }  # fmt: skip


def build(
    config: Config,
    db: Database,
    machine: Machine,
    *,
    platforms: PlatformBook | None = None,
    providers: dict[str, Provider] | None = None,
    more_tools: Sequence[Tool] = (),
) -> Gateway:
    """Wires the whole gateway. Loads the SDKs the configuration names; opens no socket.

    A simulation hands in its own adapters and tools (R28); everything between them is the real thing.
    """
    clock, supervisor = machine.clock, machine.supervisor
    g = config.gateway
    inbox, outbox = SqliteInbox(db), SqliteOutbox(db, max_age=g.max_age)
    turns = SqliteTurnsAndQuestions(db, input_limit=g.backlog_messages, input_chars=g.backlog_bytes)
    sessions = SqliteSessions(db)
    platforms = platforms if platforms is not None else _platforms(config, machine)
    providers = providers if providers is not None else make_providers(config, machine)
    replies = PlatformReplies(platforms, clock, g.max_age)
    bus, pacer = LiveBus(), Pacer(outbox, clock, settings.pace(config.platforms))
    sweep = Sweep(
        platforms, pacer, clock, machine.random, machine.checkpoints, policy=settings.sweep_policy(config),
        on_verdict=machine.metrics.delivery_failed,
    )  # fmt: skip
    hooks = _Hooks(machine, bus)
    courier = Courier(
        outbox, platforms, sweep, pacer, clock, supervisor, workers=g.workers,
        on_delivered=hooks.delivered, on_lost=hooks.lost,
    )  # fmt: skip
    views = Views(
        platforms, outbox, bus, pacer, clock, supervisor, machine.checkpoints, settings.view_settings(config),
        busy=lambda: courier.working > 0,
    )  # fmt: skip
    questions = Questions(turns, clock)
    upstreams = UpstreamBook()
    targets = settings.targets(config, providers)
    pipeline = Pipeline(
        targets, settings.recovery_policy(config, targets), clock, machine.random, upstreams=upstreams,
        on_call=machine.metrics.provider_called, trim_share=config.compression.threshold,
    )  # fmt: skip
    toolbox = _toolbox(config, machine, turns, replies, sessions, questions, more_tools)
    runner = TurnLoop(
        turns, pipeline, toolbox, replies, clock, machine.checkpoints, system=_system(machine.home),
        max_steps=config.agent.max_turns, turn_deadline=config.agent.turn_deadline, zone=settings.zone(config),
    )  # fmt: skip
    lane = TurnLane(
        runner, platforms, views, courier, clock, supervisor, turn_deadline=config.agent.turn_deadline,
        on_outcome=machine.metrics.turn_ended, on_escalate=machine.escalate,
    )  # fmt: skip
    access = AccessBook(settings.access_policies(config), owner_platforms=frozenset({"web"}))
    ingest = Ingest(
        inbox, access, clock, machine.checkpoints, hooks.accepted,
        group_sessions_per_user=g.group_sessions_per_user, merge_window=config.agent.merge_window,
        on_stranger=hooks.stranger,
    )  # fmt: skip
    links = Links(
        platforms, ingest, clock, machine.random, supervisor, settings.reconnect_policy(config),
        checkpoints=machine.checkpoints, on_change=hooks.link_changed, on_notice=hooks.link_notice,
    )  # fmt: skip
    health = _health(machine, sessions, links, pipeline, upstreams, lane, hooks)
    web = platforms.get("web")
    door = Door(
        ingest, sessions, web, make_update, bus, clock, health, machine.metrics.render
    )
    commands = Commands(
        inbox, turns, questions, replies, clock, stop_turn=lane.stop, wake=hooks.wake,
        status=hooks.status_text, model=lambda: f"{pipeline.targets[0].name} answers here.",
    )  # fmt: skip
    dispatch = Dispatch(
        inbox, turns, platforms, access, commands, questions, replies, courier, lane, clock, supervisor,
        DispatchSettings(max_age=g.max_age), width=config.agent.max_concurrent_turns,
        on_outcome=machine.metrics.turn_ended,
    )  # fmt: skip
    actions = Actions(inbox, outbox, sessions, platforms, replies, clock, courier.offer, dispatch.readmit)
    gateway = Gateway(
        config, db, turns, sessions, outbox, platforms, providers, access, ingest, dispatch, lane, courier, sweep,
        pacer, links, questions, replies, views, runner, toolbox, bus, health, door, actions,
    )  # fmt: skip
    hooks.gateway = gateway
    return gateway


def _platforms(config: Config, machine: Machine) -> PlatformBook:
    enabled = {n: c for n, c in config.platforms.items() if c.enabled and n != "web"}
    adapters = [make_platform(name, c, machine.network) for name, c in enabled.items()]
    # the page's adapter is always there: the CLI's `hermes chat` speaks through it too
    return PlatformBook([WebPlatform(), *adapters])


def _toolbox(
    config: Config,
    machine: Machine,
    turns: SqliteTurnsAndQuestions,
    replies: PlatformReplies,
    sessions: SqliteSessions,
    questions: Questions,
    more_tools: Sequence[Tool],
) -> Toolbox:
    access = settings.file_access(config, machine.home)
    for root in access.roots:
        if root.parent == machine.home.resolve():
            root.mkdir(mode=0o700, exist_ok=True)
    tools: list[Tool] = [
        ReadFile(access, machine.offload),
        SearchFiles(access, machine.offload),
        SessionSearch(sessions, settings.zone(config)),
        Clarify(),
        *more_tools,
    ]
    return Toolbox(
        tools, turns, replies, machine.clock, machine.checkpoints,
        result_chars=config.tools.max_result_bytes, question_timeout=config.approvals.timeout,
        on_question=questions.asked,
    )  # fmt: skip


def _system(home: Path) -> Callable[[], str]:
    """SOUL.md is read at start; an edit takes effect at the next start or reload."""
    try:
        soul: str | None = (home / "SOUL.md").read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        soul = None
    text = system_prompt(soul)
    return lambda: text


def _health(
    machine: Machine,
    sessions: SqliteSessions,
    links: Links,
    pipeline: Pipeline,
    upstreams: UpstreamBook,
    lane: TurnLane,
    hooks: _Hooks,
) -> HealthBook:
    sources = HealthSources(
        home=machine.home,
        sessions=sessions,
        links=links.states,
        targets=lambda: [t.name for t in pipeline.targets],
        upstreams=lambda: upstreams.last,
        lag=lambda: machine.lag.lag_seconds if machine.lag is not None else 0.0,
        output_lost=machine.output_lost,
        running=lambda: len(lane.running),
        draining=lambda: hooks.gateway is not None and hooks.gateway.draining,
        started=lambda: hooks.gateway is not None and hooks.gateway.started,
    )
    return HealthBook(sources, machine.clock, HealthSettings())


class _Hooks:
    """What parts report to each other without knowing each other."""

    def __init__(self, machine: Machine, bus: LiveBus) -> None:
        self._machine = machine
        self._bus = bus
        self._strangers_told: set[tuple[str, str]] = set()
        self.gateway: Gateway | None = None

    def accepted(self, accepted: Sequence[Accepted]) -> None:
        assert self.gateway is not None
        self.gateway.dispatch.on_accepted(accepted)
        for one in accepted:
            self._machine.metrics.received(one.row.update.platform)

    def wake(self, session: SessionId) -> None:
        assert self.gateway is not None
        self.gateway.dispatch.lanes.wake(session)

    def delivered(self, row: OutboxRow) -> None:
        assert self.gateway is not None
        self._machine.metrics.delivered(row)
        self.gateway.door.delivered(row)

    def lost(self, row: OutboxRow, reason: str) -> None:
        log.error("delivery_lost", platform=row.address.platform, chat=row.address.chat_id, delivery=row.delivery_id,
                  reason=reason, cure="hermes dead-letters list")  # fmt: skip
        self._machine.metrics.delivery_lost(row.address.platform)

    def link_changed(self, link: Link) -> None:
        self._bus.broadcast(LiveKind.LINKS, link.platform)

    def link_notice(self, link: Link, text: str) -> None:
        log.error("link_needs_you", platform=link.platform, state=link.state.value, told=text)

    def stranger(self, stranger: StrangerCount) -> None:
        """Strangers hear nothing; the owner reads the id and the line to add, once a start."""
        key = (stranger.platform, stranger.user_id)
        if key in self._strangers_told or len(self._strangers_told) >= 100:
            return
        self._strangers_told.add(key)
        log.warning(
            "stranger", platform=stranger.platform, user_id=stranger.user_id,
            to_allow=f'add to config.yaml: platforms.{stranger.platform}.allowed_users: ["{stranger.user_id}"]',
        )  # fmt: skip

    async def status_text(self) -> str:
        assert self.gateway is not None
        health = await self.gateway.health.health()
        return "\n".join(f"{i.name}: {i.light.value} – {i.sentence}" for i in health.items)


def new_key() -> str:
    """A key for a line the CLI says."""
    return str(uuid.uuid4())
