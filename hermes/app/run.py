"""``hermes run`` inside the loop: start, wait, stop in stages. Read this file first.

    open store → own it → build → recover outbox → page and control socket → links → resume turns → READY
    … a signal, or a fault that only a restart mends …
    STOPPING → stop intake → drain turns → flush the courier → release what still runs → close
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

from aiohttp.resolver import ThreadedResolver

from hermes.app import settings
from hermes.app.build import build, new_key
from hermes.app.calling import hooks_of
from hermes.app.credentials import CredentialFile
from hermes.app.figures import Figures
from hermes.app.pagetoken import new_token, page_url
from hermes.app.parts import Gateway, Machine
from hermes.app.reloading import Reloader
from hermes.config.environment import Environment
from hermes.config.load import Loaded
from hermes.core.errors import LostOwnership, StoreDamaged, StoreUnavailable
from hermes.core.records import TurnCause
from hermes.gateway.control import ControlServer
from hermes.gateway.health import as_dict
from hermes.gateway.menus import Menus
from hermes.providers.network import Network
from hermes.runtime.checkpoints import Checkpoints
from hermes.runtime.children import ChildGroups
from hermes.runtime.clock import SystemClock
from hermes.runtime.exclusive import ExclusiveNames, machine_directory
from hermes.runtime.lag import LagMonitor, Stall
from hermes.runtime.logs import get_logger
from hermes.runtime.loop import LoopGuard
from hermes.runtime.metrics import Metrics
from hermes.runtime.offload import Offload
from hermes.runtime.redaction import Redactor
from hermes.runtime.shutdown import Shutdown, Stage
from hermes.runtime.supervisor import Supervisor
from hermes.runtime.watchdog import SystemdNotifier
from hermes.store.database import ThreadedDatabase
from hermes.store.home import note_clean_end, take_ownership
from hermes.store.retention import Ages, sweep
from hermes.web.auth import PageAuth
from hermes.web.server import WebServer

log = get_logger(__name__)

CLOSE_SECONDS = 5.0
HOUSEKEEPING_SECONDS = 5.0
GC_THRESHOLDS = (10_000, 20, 50)
"""Python's 700 makes a collection every few messages; 6 % of a message's CPU was measured for it."""


@dataclass(slots=True)
class Served:
    """What ``serve`` found in the end: the exit code."""

    code: int


@dataclass(frozen=True, slots=True)
class Output:
    """The process's voice: ``lost`` counts dropped lines, ``close(seconds)`` is its last word, ``announce``
    says a line to the person at the terminal that no log may hold (None: nobody sits there)."""

    redactor: Redactor
    lost: Callable[[], int]
    close: Callable[[float], object]
    announce: Callable[[str], None] | None


@dataclass(slots=True)
class _Entrances:
    """What listens."""

    web: WebServer
    control: ControlServer
    url: str


async def serve(loaded: Loaded, environment: Environment, output: Output, served: Served) -> None:
    """Runs the gateway until it is told to stop. Raises ForeignHome, StoreUnavailable, OSError at start."""
    loop = asyncio.get_running_loop()
    guard = LoopGuard(_loop_fault)
    guard.install(loop)
    shutdown = Shutdown(loaded.config.gateway.drain_timeout + CLOSE_SECONDS, reserve=CLOSE_SECONDS)
    machine = _machine(environment, output, shutdown, served)
    shutdown.add_children(machine.offload.children)
    shutdown.add_sink(output.close)
    machine.offload.install(loop)
    db = ThreadedDatabase(environment.home / "state.db")
    db.on_failure = partial(_store_failed, machine.escalate)
    await db.open()
    try:
        await _serve(loaded, db, machine, output, shutdown)
    finally:
        await db.aclose()
        stuck = await machine.supervisor.aclose(1.0)
        if stuck:
            log.error("tasks_did_not_end", tasks=stuck)
        machine.offload.close()
        if machine.exclusive is not None:
            machine.exclusive.release()
        guard.uninstall(loop)


def _machine(environment: Environment, output: Output, shutdown: Shutdown, served: Served) -> Machine:
    clock = SystemClock()

    def escalate(error: BaseException) -> None:
        """Only store, dispatch and the loop come here (R26): a restart is what mends it."""
        log.error("escalated", error=repr(error))
        served.code = 75
        shutdown.request(f"escalated: {error!r}")

    supervisor = Supervisor("gateway", clock=clock, on_crash=_crashed, on_escalate=escalate)
    return Machine(
        environment.home, environment, clock, supervisor, Offload(children=ChildGroups()),
        Network(ThreadedResolver()), Figures(Metrics()), LagMonitor(on_stall=_stalled),
        Checkpoints(environment.crash_at), output.lost, escalate,
        exclusive=ExclusiveNames(machine_directory(environment.runtime_dir)), on_secret=output.redactor.register,
        redact=output.redactor.redact,
    )  # fmt: skip


async def _serve(
    loaded: Loaded, db: ThreadedDatabase, machine: Machine, output: Output, shutdown: Shutdown
) -> None:
    """Owns the store, builds, starts, waits, stops."""
    environment = machine.environment
    owned = await take_ownership(db, machine.clock.now())
    db.generation = owned.generation
    if not owned.clean:
        log.warning("unclean_end_before", suspects=owned.suspects, parked=owned.parked)
    gateway = build(loaded.config, db, machine)
    notifier = SystemdNotifier(environment.notify_socket, watchdog_interval=environment.watchdog)
    reloader = Reloader(gateway, machine, loaded)
    gateway.homes.reload = reloader.reload
    shutdown.install_signals(asyncio.get_running_loop(), on_hangup=reloader.reload)
    entrances = await _start(gateway, machine, loaded, output.redactor)
    reloader.on_page = lambda config: entrances.web.reconfigure(*settings.page(config))
    _plan_the_end(gateway, entrances, shutdown, db)
    assert machine.lag is not None
    machine.lag.start()
    _ready(gateway, entrances, notifier, machine)
    if output.announce is not None:
        output.announce(_welcome(entrances))
    await shutdown.requested.wait()
    notifier.stopping()
    log.info("stopping", reason=shutdown.reason)
    for report in await shutdown.run():
        if not report.finished or report.error is not None:
            log.warning("stop_step", step=report.name, seconds=round(report.seconds, 2), error=repr(report.error))
    machine.lag.stop()


def _welcome(entrances: _Entrances) -> str:
    """For the person at the terminal; the address holds the page's token, so it never goes into a log."""
    port = entrances.web.port
    return (
        f"\n  Open the page:       {entrances.url}\n"
        f"  On a server, first:  ssh -L {port}:127.0.0.1:{port} THIS-HOST\n"
    )


async def _start(
    gateway: Gateway, machine: Machine, loaded: Loaded, redactor: Redactor
) -> _Entrances:
    """Everything that listens and receives; the order is the order of what depends on what."""
    clock, config = machine.clock, loaded.config
    await gateway.pacer.load()
    await gateway.questions.load()
    await gateway.people.load()
    await gateway.homes.load()
    await gateway.outages.load(gateway.governor.load)
    await gateway.runner.pipeline.repairs.learned.load()
    doubtful = await gateway.outbox.recover(
        config.gateway.delivery.uncertain.value, clock.now(),
        safe=[platform.name for platform in gateway.platforms if platform.creates_are_safe],
    )  # fmt: skip
    if doubtful:
        log.warning("sends_cut_off_by_the_last_end", rows=doubtful)
    token = await CredentialFile(machine.home, machine.offload).page_token(new_token)
    redactor.register(token)
    host, port = settings.bind_of(config)
    limits, cookie_age, hosts = settings.page(config)
    server = WebServer(
        gateway.door, PageAuth(token, cookie_age, hosts), clock, limits, as_dict,
        hooks_of(gateway.platforms, machine.metrics.called),
    )
    await server.start(host, port)
    url = page_url(host, server.port, token)
    control = ControlServer(
        machine.home / "control.sock", gateway.door, gateway.actions, lambda: url, new_key, machine.supervisor,
        gateway.governor,
    )
    await control.start()
    machine.supervisor.spawn_forever(gateway.dispatch.run, "dispatch.triage", essential=True)
    machine.supervisor.spawn_forever(housekeeping(gateway, machine), "housekeeping")
    machine.supervisor.spawn_forever(gateway.outages.run, "outages")
    Menus(gateway.platforms, gateway.dispatch.commands.menu, clock, machine.supervisor).start()
    gateway.links.start()
    gateway.dispatch.settings.ready_at = clock.now()
    resumed = await gateway.dispatch.recover()
    gateway.courier.offer(await gateway.outbox.pending())
    if resumed:
        log.info("resumed", sessions=resumed)
    return _Entrances(server, control, url)


def _ready(gateway: Gateway, entrances: _Entrances, notifier: SystemdNotifier, machine: Machine) -> None:
    gc.collect()
    gc.freeze()  # what start-up made lives as long as the process: no later collection looks at it again
    gc.set_threshold(*GC_THRESHOLDS)
    gateway.started = True
    targets = ", ".join(t.name for t in gateway.runner.pipeline.targets)
    platforms = ", ".join(p.name for p in gateway.platforms)
    log.info("ready", page=entrances.url.partition("#")[0], model=targets, platforms=platforms)
    notifier.ready(f"serving; model {targets}")
    if notifier.watchdog_interval is not None:
        machine.supervisor.spawn_forever(lambda: notifier.feed(machine.clock), "watchdog")


def _plan_the_end(
    gateway: Gateway, entrances: _Entrances, shutdown: Shutdown, db: ThreadedDatabase
) -> None:
    """Stop intake, drain, flush, close: each within what is left of one deadline (R31)."""

    async def stop_intake(left: float) -> None:
        gateway.draining = True
        gateway.door.open = False
        await gateway.links.stop()
        gateway.outages.stopped = True
        gateway.dispatch.stop_intake()

    async def release(left: float) -> None:
        """What the drain did not finish is given back: it resumes at the next start, and nothing is counted."""
        released = gateway.lane.cancel_all(TurnCause.SHUTDOWN)
        if released:
            log.info("turns_released", count=released)
        await gateway.dispatch.lanes.drain(min(left, 2.0))

    async def flush(left: float) -> None:
        await gateway.courier.drain(min(left, 3.0))
        gateway.courier.stop()
        await gateway.courier.drain(1.0)

    async def close(left: float) -> None:
        gateway.door.close()
        await entrances.control.aclose()
        await entrances.web.aclose()
        for platform in gateway.platforms:
            await platform.aclose()
        for provider in gateway.providers.values():
            await provider.aclose()

    shutdown.add(Stage.STOP_INTAKE, "intake", stop_intake)
    shutdown.add(Stage.DRAIN, "turns", gateway.dispatch.lanes.drain)
    shutdown.add(Stage.FLUSH, "release", release)
    shutdown.add(Stage.FLUSH, "courier", flush)
    shutdown.add(Stage.CLOSE, "close", close)
    shutdown.add(Stage.CLOSE, "mark", lambda left: note_clean_end(db))


def housekeeping(gateway: Gateway, machine: Machine) -> Callable[[], Awaitable[None]]:
    """Small regular work: expired questions, the text index, gauges."""

    async def forever() -> None:
        while True:
            await machine.clock.sleep(HOUSEKEEPING_SECONDS)
            try:
                await _housework(gateway, machine)
            except StoreUnavailable as error:
                log.error("housekeeping_waits_for_the_store", error=str(error))

    return forever


async def _housework(gateway: Gateway, machine: Machine) -> None:
    for session in await gateway.questions.expire():
        gateway.dispatch.lanes.wake(session)
    if not gateway.lane.running:
        await gateway.sessions.index_new_text()
        kept = gateway.config.retention
        ages = Ages(kept.messages, kept.inbox, kept.outbox, kept.seen_keys)
        await sweep(gateway.db, ages, machine.clock.now())
        if gateway.media is not None:
            await gateway.media.sweep(kept.media, machine.clock.now())
        if gateway.spool is not None:
            await gateway.spool.sweep(kept.media, machine.clock.now())
    machine.metrics.observe(await gateway.sessions.figures(), machine.clock.now())


def _crashed(name: str, error: BaseException) -> None:
    log.error("task_crashed", task=name, error=repr(error), exc_info=error)


def _store_failed(escalate: Callable[[BaseException], None], error: BaseException) -> None:
    """A full disk is waited for; a damaged file or a home that another process took over is left (R26, R32)."""
    log.error("store_refused", error=str(error))
    if isinstance(error, LostOwnership | StoreDamaged):
        escalate(error)


def _loop_fault(kind: str, message: str, error: BaseException | None) -> None:
    log.error("loop_fault", type=kind, message=message, error=repr(error))


def _stalled(stall: Stall) -> None:
    log.warning("loop_stalled", stall=str(stall))
