"""A home in which no gateway runs: the command line holds its lock and works there itself (R33).

`act` works on the store alone and takes no ownership (R32): the generation and the mark of a clean or unclean
end stay as they are, for no turn is run. `talking` runs a whole gateway for the length of a chat, owned and ended
as by ``hermes run``, but without page and links: nobody else is answered, their rows wait for the next start.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TypeVar

from aiohttp.resolver import ThreadedResolver

from hermes.agent.account import Money
from hermes.agent.repairs import LearnedBook
from hermes.app import settings
from hermes.app.build import build, new_key
from hermes.app.catalogue import make_platform
from hermes.app.figures import Figures
from hermes.app.loading import load
from hermes.app.parts import Gateway, Machine
from hermes.app.people import make_people
from hermes.app.run import housekeeping
from hermes.app.secrets import secrets_in
from hermes.config.environment import Environment
from hermes.config.load import Loaded
from hermes.config.model import Config
from hermes.core.errors import TargetUnknown
from hermes.core.ports import Platform
from hermes.core.records import TurnCause
from hermes.gateway.actions import Actions
from hermes.gateway.control import ControlServer
from hermes.gateway.ingest import AccessBook
from hermes.gateway.platform_book import PlatformBook
from hermes.gateway.replies import PlatformReplies
from hermes.gateway.usage import UsageBook
from hermes.platforms.web.adapter import WebPlatform
from hermes.providers.network import Network
from hermes.runtime.checkpoints import Checkpoints
from hermes.runtime.children import ChildGroups
from hermes.runtime.clock import SystemClock
from hermes.runtime.logs import configure, get_logger
from hermes.runtime.loop import LoopGuard
from hermes.runtime.metrics import Metrics
from hermes.runtime.offload import Offload
from hermes.runtime.output import LineSink
from hermes.runtime.redaction import Redactor
from hermes.runtime.supervisor import Supervisor
from hermes.store.database import ThreadedDatabase
from hermes.store.home import HomeLock, note_clean_end, prepare_home, take_ownership
from hermes.store.inbox import SqliteInbox
from hermes.store.learned import SqliteLearned
from hermes.store.ledger import SqliteLedger
from hermes.store.outbox import SqliteOutbox
from hermes.store.sessions import SqliteSessions

log = get_logger(__name__)

END_SECONDS = 2.0
"""How long turns that are cut off at the end may take to write so."""

T = TypeVar("T")


@contextmanager
def held(environment: Environment) -> Iterator[None]:
    """The home, prepared and locked. Raises HomeInUse: a gateway is starting or stopping just now."""
    prepare_home(environment.home)
    lock = HomeLock(environment.home)
    lock.acquire()
    try:
        yield
    finally:
        lock.release()


def log_to_file(loaded: Loaded, environment: Environment, *, debug: bool) -> tuple[LineSink, Redactor]:
    """Log lines of this process go to ``logs/chat.log``, begun anew, and not between the lines of a chat."""
    redactor = Redactor()
    for secret in secrets_in(loaded.config):
        redactor.register(secret)
    path = environment.home / "logs" / "chat.log"
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    sink = LineSink(fd, max_bytes=loaded.config.output.max_bytes)
    level = loaded.config.output.level.value
    configure(sink=sink, terminal=False, level=level, redactor=redactor, debug=debug)
    for notice in loaded.notices:
        log.warning("notice", text=notice)
    return sink, redactor


def act(
    environment: Environment,
    what: Callable[[Actions], Awaitable[T]],
    *,
    renders: bool,
    config_path: Path | None = None,
) -> T:
    """The result of one of the owner's actions on the store alone; ``renders``: it needs the platforms' adapters.

    What it puts into the outbox is sent when a gateway runs again. Raises ConfigError, ForeignHome, HomeInUse,
    StoreUnavailable, TargetUnknown.
    """
    config = load(environment, config_path).config
    with held(environment), asyncio.Runner() as runner:
        return runner.run(_act(environment.home, config, what, renders))


@asynccontextmanager
async def talking(
    loaded: Loaded, environment: Environment, on_secret: Callable[[str], None]
) -> AsyncIterator[None]:
    """A gateway that serves ``control.sock`` and nothing else until the block ends; the caller holds the lock.
    ``on_secret`` is told each key that is fetched meanwhile (R40).

    Raises ForeignHome, StoreUnavailable. What a turn has not finished at the end is resumed at the next start.
    """
    loop = asyncio.get_running_loop()
    guard = LoopGuard(
        lambda kind, text, error: log.error("loop_fault", type=kind, message=text, error=repr(error))
    )
    guard.install(loop)
    redactor = Redactor()
    for secret in secrets_in(loaded.config):
        redactor.register(secret)

    def known(secret: str) -> None:
        redactor.register(secret)
        on_secret(secret)

    machine, faults = _machine(environment, known)
    machine.redact = redactor.redact
    machine.offload.install(loop)
    db = ThreadedDatabase(environment.home / "state.db")
    await db.open()
    try:
        owned = await take_ownership(db, machine.clock.now())
        db.generation = owned.generation
        gateway = build(loaded.config, db, machine)
        faults.append(gateway.door.close)
        await gateway.runner.pipeline.repairs.learned.load()
        control = await _listen(gateway, machine)
        try:
            yield
        finally:
            await _end(gateway, control)
            await note_clean_end(db)
    finally:
        await db.aclose()
        for name in await machine.supervisor.aclose(1.0):
            log.error("task_did_not_end", task=name)
        machine.offload.close()
        guard.uninstall(loop)


def _machine(
    environment: Environment, on_secret: Callable[[str], None]
) -> tuple[Machine, list[Callable[[], None]]]:
    """And what is called when something breaks that only a restart mends (R26)."""
    clock = SystemClock()
    faults: list[Callable[[], None]] = []

    def escalate(error: BaseException) -> None:
        log.error("escalated", error=repr(error))
        for close in faults:
            close()

    supervisor = Supervisor(
        "chat", clock=clock, on_escalate=escalate,
        on_crash=lambda name, error: log.error("task_crashed", task=name, error=repr(error), exc_info=error),
    )  # fmt: skip
    machine = Machine(
        environment.home, environment, clock, supervisor, Offload(children=ChildGroups()),
        Network(ThreadedResolver()), Figures(Metrics()), None, Checkpoints(environment.crash_at), lambda: 0, escalate,
        on_secret=on_secret,
    )  # fmt: skip
    return machine, faults


async def _listen(gateway: Gateway, machine: Machine) -> ControlServer:
    await gateway.pacer.load()
    await gateway.questions.load()
    await gateway.people.load()
    await gateway.homes.load()
    await gateway.outages.load(gateway.governor.load)
    path = machine.home / "control.sock"
    control = ControlServer(path, gateway.door, gateway.actions, _no_page, new_key, machine.supervisor)
    await control.start()
    machine.supervisor.spawn_forever(gateway.dispatch.run, "dispatch.triage", essential=True)
    machine.supervisor.spawn_forever(housekeeping(gateway, machine), "housekeeping")
    machine.supervisor.spawn_forever(gateway.outages.run, "outages")
    gateway.dispatch.settings.ready_at = machine.clock.now()
    gateway.started = True
    return control


def _no_page() -> str:
    raise TargetUnknown("only `hermes chat` runs here, and it serves no page: start `hermes run`")


async def _end(gateway: Gateway, control: ControlServer) -> None:
    gateway.door.open = False
    gateway.outages.stopped = True
    gateway.dispatch.stop_intake()
    gateway.lane.cancel_all(TurnCause.SHUTDOWN)
    await gateway.dispatch.lanes.drain(END_SECONDS)
    gateway.courier.stop()
    gateway.door.close()
    await control.aclose()
    for part in (*gateway.platforms, *gateway.providers.values()):
        await part.aclose()


async def _act(home: Path, config: Config, what: Callable[[Actions], Awaitable[T]], renders: bool) -> T:
    clock = SystemClock()
    supervisor = Supervisor("offline", clock=clock)
    platforms = PlatformBook(_adapters(config) if renders else [WebPlatform()])
    db = ThreadedDatabase(home / "state.db")
    try:
        await db.open()
        return await what(await _actions(config, db, platforms, clock, supervisor))
    finally:
        await db.aclose()
        for platform in platforms:
            await platform.aclose()
        await supervisor.aclose(1.0)


def _adapters(config: Config) -> list[Platform]:
    """Made to render with; none is connected."""
    network = Network(ThreadedResolver())
    enabled = {name: one for name, one in config.platforms.items() if one.enabled and name != "web"}
    return [WebPlatform(), *(make_platform(name, one, network) for name, one in enabled.items())]


def _usage(config: Config, db: ThreadedDatabase, clock: SystemClock) -> UsageBook:
    money = Money(SqliteLedger(db), clock, zone=settings.zone(config))
    return UsageBook(money.ledger, lambda: settings.caps(config), money.today)


async def _actions(
    config: Config, db: ThreadedDatabase, platforms: PlatformBook, clock: SystemClock, supervisor: Supervisor
) -> Actions:
    max_age = config.gateway.max_age
    outbox, replies = SqliteOutbox(db, max_age=max_age), PlatformReplies(platforms, clock, max_age)
    access = AccessBook({}, owner_platforms=frozenset())
    people = make_people(config, db, access, outbox, replies, clock, supervisor, lambda rows: None)
    learned = LearnedBook(clock, SqliteLearned(db))
    await learned.load()
    return Actions(
        SqliteInbox(db), outbox, SqliteSessions(db), platforms, replies, clock, offer=lambda rows: None,
        readmit=lambda row: None, learned=learned, usage=_usage(config, db, clock), people=people,
    )  # fmt: skip
