"""The composition root: every part is made here, once, and handed what it needs (DESIGN §2)."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hermes.agent.account import Money
from hermes.agent.goals import PipelineJudge
from hermes.agent.governor import Governor
from hermes.agent.pipeline import Pipeline
from hermes.agent.repairs import LearnedBook, Repairs
from hermes.agent.targets import UpstreamBook
from hermes.agent.toolbox import Toolbox
from hermes.agent.turn import TurnLoop
from hermes.app import settings
from hermes.app.attaching import attach, attachment_tools, media_store
from hermes.app.catalogue import make_platform, make_provider
from hermes.app.compacting import compressing, make_compactor
from hermes.app.credentials import CredentialFile, make_pool
from hermes.app.hooks import Hooks
from hermes.app.instructions import instructions
from hermes.app.parts import Gateway, Machine
from hermes.app.people import make_homes, make_people
from hermes.app.secrets import api_key
from hermes.config.model import Config
from hermes.core.ports import Provider, Tool
from hermes.gateway.actions import Actions
from hermes.gateway.commands import Commands, money_commands
from hermes.gateway.courier import Courier
from hermes.gateway.dead_chats import DeadChats
from hermes.gateway.dispatch import Dispatch
from hermes.gateway.door import Door
from hermes.gateway.goals import GoalKeeper
from hermes.gateway.health import HealthBook, HealthSources
from hermes.gateway.ingest import AccessBook, Ingest
from hermes.gateway.lane import TurnLane
from hermes.gateway.links import Links
from hermes.gateway.live import LiveBus
from hermes.gateway.outages import Outages
from hermes.gateway.pacer import Pacer
from hermes.gateway.people import People
from hermes.gateway.platform_book import PlatformBook
from hermes.gateway.questions import Questions
from hermes.gateway.replies import PlatformReplies
from hermes.gateway.session_commands import SessionCommands
from hermes.gateway.sweep import Sweep
from hermes.gateway.usage import UsageBook
from hermes.gateway.view import Views
from hermes.platforms.discord.config import DiscordConfig
from hermes.platforms.slack.config import SlackConfig
from hermes.platforms.telegram.config import TelegramConfig
from hermes.platforms.web.adapter import WebPlatform, make_update
from hermes.providers.rehearsal.config import RehearsalConfig
from hermes.store.conversations import SqliteConversations
from hermes.store.database import Database
from hermes.store.goals import SqliteGoals
from hermes.store.inbox import SqliteInbox
from hermes.store.learned import SqliteLearned
from hermes.store.ledger import SqliteLedger
from hermes.store.media import SqliteMedia
from hermes.store.outbox import SqliteOutbox
from hermes.store.parking import SqliteParking
from hermes.store.questions import SqliteTurnsAndQuestions
from hermes.store.sessions import SqliteSessions
from hermes.store.snapshots import SqliteSnapshots
from hermes.store.spool import Spool
from hermes.store.upstreams import SqliteUpstreams
from hermes.tools.clarify import Clarify
from hermes.tools.files import ReadFile, SearchFiles
from hermes.tools.session_search import SessionSearch


def make_providers(config: Config, machine: Machine) -> dict[str, Provider]:
    """The providers that targets name; others are not loaded (no SDK is imported for nothing)."""
    return {
        name: make_provider(
            name, config.providers[name], api_key(name, config.providers[name], machine.environment.variables),
            machine.network,
        )
        for name in settings.provider_names(config)
    }  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Stores:
    inbox: SqliteInbox
    outbox: SqliteOutbox
    turns: SqliteTurnsAndQuestions
    sessions: SqliteSessions
    upstreams: SqliteUpstreams
    parking: SqliteParking
    learned: SqliteLearned
    ledger: SqliteLedger
    media: SqliteMedia
    snapshots: SqliteSnapshots
    spool: Spool


@dataclass(frozen=True, slots=True)
class _Delivery:
    replies: PlatformReplies
    bus: LiveBus
    pacer: Pacer
    sweep: Sweep
    courier: Courier
    views: Views


@dataclass(frozen=True, slots=True)
class _Agent:
    questions: Questions
    upstreams: UpstreamBook
    governor: Governor
    outages: Outages
    pipeline: Pipeline
    toolbox: Toolbox
    runner: TurnLoop
    lane: TurnLane


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
    clock, g = machine.clock, config.gateway
    hooks = Hooks(machine.metrics)
    book = platforms if platforms is not None else _platforms(config, machine)
    made = providers if providers is not None else make_providers(config, machine)
    stores = _Stores(
        SqliteInbox(db), SqliteOutbox(db, max_age=g.max_age),
        SqliteTurnsAndQuestions(db, input_limit=g.backlog_messages, input_chars=g.backlog_bytes), SqliteSessions(db),
        SqliteUpstreams(db), SqliteParking(db), SqliteLearned(db), SqliteLedger(db), media_store(config, db, machine),
        SqliteSnapshots(db), Spool(db, machine.home / "spool", machine.offload),
    )  # fmt: skip
    out = _delivery(config, machine, stores, book, hooks)
    agent = _agent(config, machine, stores, book, out, made, more_tools, hooks)
    access = AccessBook(settings.access_policies(config), owner_platforms=frozenset({"web"}))
    ingest = _ingest(config, machine, stores, access, hooks)
    links = Links(
        book, ingest, clock, machine.random, machine.supervisor, settings.reconnect_policy(config),
        checkpoints=machine.checkpoints, may_receive=_token_is_free(config, machine), on_change=hooks.link_changed,
        on_notice=hooks.link_notice,
    )  # fmt: skip
    health = _health(config, machine, stores.sessions, links, agent, hooks)
    health.sources.dead_chats = lambda: out.pacer.dead.reasons
    links.has_room = health.has_room
    door = Door(
        ingest, stores.sessions, book.get("web"), make_update, out.bus, clock, health, machine.metrics.render
    )
    commands = Commands(
        stores.inbox, stores.turns, agent.questions, out.replies, clock, stop_turn=agent.lane.stop, wake=hooks.wake,
        status=hooks.status_text, model=lambda: f"{agent.pipeline.targets[0].name} answers here.",
    )  # fmt: skip
    dispatch = Dispatch(
        stores.inbox, stores.outbox, stores.turns, book, access, commands, agent.questions, out.replies,
        out.courier, agent.lane, clock, machine.supervisor, settings.dispatch_settings(config),
        width=config.agent.max_concurrent_turns, on_outcome=machine.metrics.turn_ended,
    )  # fmt: skip
    usage, people = _more_commands(config, db, machine, stores, agent, dispatch, ingest, hooks)
    actions = Actions(
        stores.inbox, stores.outbox, stores.sessions, book, out.replies, clock, out.courier.offer, dispatch.readmit,
        agent.pipeline.repairs.learned, usage, people,
    )  # fmt: skip
    gateway = Gateway(
        config, db, stores.turns, stores.sessions, stores.outbox, book, made, access, ingest, dispatch, agent.lane,
        out.courier, out.sweep, out.pacer, links, agent.questions, out.replies, out.views, agent.runner,
        agent.toolbox, out.bus, health, door, actions, agent.governor, agent.outages,
        people, make_homes(config, db, dispatch, links, machine.supervisor),
    )  # fmt: skip
    hooks.gateway = attach(gateway, machine, stores.media, stores.spool)
    return gateway


def _ingest(config: Config, machine: Machine, stores: _Stores, access: AccessBook, hooks: Hooks) -> Ingest:
    return Ingest(
        stores.inbox, access, machine.clock, machine.checkpoints, hooks.accepted,
        group_sessions_per_user=config.gateway.group_sessions_per_user, merge_window=config.agent.merge_window,
        on_stranger=hooks.stranger,
    )  # fmt: skip


def _more_commands(
    config: Config, db: Database, machine: Machine, stores: _Stores, agent: _Agent, dispatch: Dispatch, ingest: Ingest,
    hooks: Hooks,
) -> tuple[UsageBook, People]:  # fmt: skip
    """What conversations, goals, budgets and pairing add to the chat commands."""
    clock, commands, replies, money = machine.clock, dispatch.commands, dispatch.replies, agent.runner.money
    dispatch.sessions = SessionCommands(
        SqliteConversations(db), stores.turns, stores.outbox, replies, clock, keys=ingest.keys_of,
        moved=dispatch.moved, readmit=dispatch.readmit, zone=settings.zone(config), reset=settings.reset_policy(config),
    )  # fmt: skip
    usage = UsageBook(stores.ledger, lambda: money.caps, money.today)
    commands.goals = dispatch.goals = goals = GoalKeeper(
        SqliteGoals(db), PipelineJudge(agent.pipeline, money, clock), replies, dispatch.access, clock,
        offer=dispatch.courier.offer, wake=hooks.wake, max_turns=config.goals.max_turns,
    )  # fmt: skip
    commands.add(*dispatch.sessions.specs, *money_commands(usage, goals), compressing(agent.runner, machine))
    people = make_people(
        config, db, dispatch.access, stores.outbox, replies, clock, machine.supervisor, dispatch.courier.offer
    )
    ingest.on_knock = people.knocked
    commands.add(*people.specs)
    return usage, people


def _delivery(
    config: Config, machine: Machine, stores: _Stores, book: PlatformBook, hooks: Hooks
) -> _Delivery:
    """From a reply to a receipt."""
    clock, supervisor = machine.clock, machine.supervisor
    replies = PlatformReplies(book, clock, config.gateway.max_age, machine.offload)
    bus, pacer = LiveBus(), Pacer(
        stores.outbox, clock, DeadChats(stores.outbox, clock, supervisor), settings.pace(config.platforms)
    )
    sweep = Sweep(
        book, pacer, clock, machine.random, machine.checkpoints, policy=settings.sweep_policy(config),
        on_verdict=machine.metrics.delivery_failed,
    )  # fmt: skip
    courier = Courier(
        stores.outbox, book, sweep, pacer, clock, supervisor, workers=config.gateway.workers,
        on_delivered=hooks.delivered, on_lost=hooks.lost,
    )  # fmt: skip
    views = Views(
        book, stores.outbox, bus, pacer, clock, supervisor, machine.checkpoints, settings.view_settings(config)
    )  # fmt: skip
    pacer.delivering = courier.holds
    return _Delivery(replies, bus, pacer, sweep, courier, views)


def _agent(
    config: Config,
    machine: Machine,
    stores: _Stores,
    book: PlatformBook,
    out: _Delivery,
    providers: dict[str, Provider],
    more_tools: Sequence[Tool],
    hooks: Hooks,
) -> _Agent:
    """Turns: who runs them, what they may call, how calls recover."""
    clock = machine.clock
    questions = Questions(
        stores.turns, clock, stores.outbox, out.replies, book, machine.supervisor, out.courier.offer
    )
    upstreams = UpstreamBook()
    targets = settings.targets(config, providers)
    governor = Governor(
        clock, machine.random, limits=settings.limits(config), policy=settings.breaker_policy(config)
    )
    repairs = _repairs(config, machine, stores.learned, providers)
    policy = settings.recovery_policy(config, machine.environment.variables)
    pipeline = Pipeline(
        targets, policy, clock, machine.random, upstreams=upstreams,
        on_call=machine.metrics.provider_called, trim_share=config.compression.threshold, governor=governor,
        repairs=repairs,
    )  # fmt: skip
    outages = Outages(
        stores.parking, governor, stores.upstreams, clock,
        targets=lambda: [t.name for t in pipeline.targets], wake=hooks.wake,
    )  # fmt: skip
    governor.on_change = outages.changed
    tools = (*attachment_tools(config, stores.media, stores.spool, machine), *more_tools)
    toolbox = _toolbox(config, machine, stores.turns, out.replies, stores.sessions, questions, tools)
    money = Money(
        stores.ledger, clock, caps=settings.caps(config), zone=settings.zone(config), count=pipeline.tokens.prompt
    )
    compactor = make_compactor(config, stores.snapshots, machine, pipeline, money, providers)
    runner = TurnLoop(
        stores.turns, pipeline, toolbox, out.replies, clock, machine.checkpoints,
        instructions=instructions(machine.home), compactor=compactor,
        money=money, turn_tokens=config.agent.budget.turn_tokens,
        max_steps=config.agent.max_turns, turn_deadline=config.agent.turn_deadline, zone=settings.zone(config),
        on_outcome=machine.metrics.turn_ended, parking=stores.parking, on_park=outages.parked,
        park_for=config.gateway.max_age,
    )  # fmt: skip
    lane = TurnLane(
        runner, book, out.views, out.courier, clock, machine.supervisor, turn_deadline=config.agent.turn_deadline,
        on_outcome=machine.metrics.turn_ended, on_escalate=machine.escalate,
    )  # fmt: skip
    lane.merge_window = config.agent.merge_window
    stores.turns.uncertain = config.gateway.delivery.uncertain.value
    return _Agent(questions, upstreams, governor, outages, pipeline, toolbox, runner, lane)


def _repairs(
    config: Config, machine: Machine, store: SqliteLearned, providers: dict[str, Provider]
) -> Repairs:
    file = CredentialFile(machine.home, machine.offload)
    environ = machine.environment.variables
    pools = {name: make_pool(name, config.providers[name], machine, file, environ) for name in sorted(providers)}
    return Repairs(
        LearnedBook(machine.clock, store), {name: pool for name, pool in pools.items() if pool is not None}
    )


def _platforms(config: Config, machine: Machine) -> PlatformBook:
    enabled = {n: c for n, c in config.platforms.items() if c.enabled and n != "web"}
    adapters = [make_platform(name, c, machine.network) for name, c in enabled.items()]
    # the page's adapter is always there: the CLI's `hermes chat` speaks through it too
    return PlatformBook([WebPlatform(), *adapters])


def _token_is_free(config: Config, machine: Machine) -> Callable[[str], bool]:
    """Whether this process may receive for a platform: one bot token, one receiver a machine (R32).

    The same token at another server is another bot.
    """
    names = machine.exclusive
    tokens = {}
    for n, p in config.platforms.items():
        if isinstance(p, TelegramConfig | DiscordConfig):
            server = p.base_url if isinstance(p, TelegramConfig) else p.api_url
            tokens[n] = f"{server} {p.token.get_secret_value()}"
        elif isinstance(p, SlackConfig):
            tokens[n] = f"{p.base_url} {p.bot_token.get_secret_value()}"
    return lambda platform: names is None or platform not in tokens or names.hold(f"{platform}:{tokens[platform]}")


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
        guardrails=settings.guardrails(config), max_parallel=config.tools.max_parallel, on_question=questions.asked,
        guest_tools=config.tools.guest_tools,
    )  # fmt: skip


def _health(
    config: Config,
    machine: Machine,
    sessions: SqliteSessions,
    links: Links,
    agent: _Agent,
    hooks: Hooks,
) -> HealthBook:
    rehearsals = {name for name, provider in config.providers.items() if isinstance(provider, RehearsalConfig)}
    sources = HealthSources(
        home=machine.home,
        sessions=sessions,
        links=links.states,
        targets=lambda: [t.name for t in agent.pipeline.targets],
        upstreams=lambda: agent.upstreams.last,
        guards=agent.governor.views,
        lag=lambda: machine.lag.lag_seconds if machine.lag is not None else 0.0,
        output_lost=machine.output_lost,
        running=lambda: len(agent.lane.running),
        draining=lambda: hooks.gateway is not None and hooks.gateway.draining,
        started=lambda: hooks.gateway is not None and hooks.gateway.started,
        rehearsing=lambda: {t.name for t in agent.pipeline.targets if t.provider.name in rehearsals},
    )
    return HealthBook(sources, machine.clock, settings.health_settings(config))


def new_key() -> str:
    """A key for a line the CLI says."""
    return str(uuid.uuid4())
