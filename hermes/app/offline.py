"""The store of a home in which no gateway runs: the command line works on it directly (R33).

The home's lock is held meanwhile, so that no gateway starts under us; ownership (R32) is not taken: the
generation and the mark of a clean or unclean end stay as they are, for no turn is run here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from aiohttp.resolver import ThreadedResolver

from hermes.app.catalogue import make_platform
from hermes.app.process import load
from hermes.config.environment import Environment
from hermes.config.model import Config
from hermes.core.ports import Platform
from hermes.gateway.actions import Actions
from hermes.gateway.platform_book import PlatformBook
from hermes.gateway.replies import PlatformReplies
from hermes.platforms.web.adapter import WebPlatform
from hermes.providers.network import Network
from hermes.runtime.clock import SystemClock
from hermes.runtime.supervisor import Supervisor
from hermes.store.database import ThreadedDatabase
from hermes.store.home import HomeLock, prepare_home
from hermes.store.inbox import SqliteInbox
from hermes.store.outbox import SqliteOutbox
from hermes.store.sessions import SqliteSessions

T = TypeVar("T")


def act(environment: Environment, config_path: Path | None, what: Callable[[Actions], Awaitable[T]]) -> T:
    """The result of one of the owner's actions on the store alone.

    What it puts into the outbox is sent when a gateway runs again. Raises ConfigError, ForeignHome, HomeInUse
    (a gateway is starting or stopping just now), StoreUnavailable, TargetUnknown.
    """
    config = load(environment, config_path).config
    prepare_home(environment.home)
    lock = HomeLock(environment.home)
    lock.acquire()
    try:
        with asyncio.Runner() as runner:
            return runner.run(_act(environment.home, config, what))
    finally:
        lock.release()


async def _act(home: Path, config: Config, what: Callable[[Actions], Awaitable[T]]) -> T:
    clock = SystemClock()
    supervisor = Supervisor("offline", clock=clock)
    db = ThreadedDatabase(home / "state.db", supervisor)
    await db.open()
    platforms = PlatformBook(_adapters(config))
    try:
        return await what(_actions(config, db, platforms, clock))
    finally:
        for platform in platforms:
            await platform.aclose()
        await db.aclose()
        await supervisor.aclose(1.0)


def _adapters(config: Config) -> list[Platform]:
    """Made to render with; none is connected."""
    network = Network(ThreadedResolver())
    enabled = {name: one for name, one in config.platforms.items() if one.enabled and name != "web"}
    return [WebPlatform(), *(make_platform(name, one, network) for name, one in enabled.items())]


def _actions(config: Config, db: ThreadedDatabase, platforms: PlatformBook, clock: SystemClock) -> Actions:
    max_age = config.gateway.max_age
    return Actions(
        SqliteInbox(db), SqliteOutbox(db, max_age=max_age), SqliteSessions(db), platforms,
        PlatformReplies(platforms, clock, max_age), clock, offer=lambda rows: None, readmit=lambda row: None,
    )  # fmt: skip
