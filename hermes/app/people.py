"""Wires who is let in (offers to strangers, /pair, `hermes pairing`), and the channels where the owner is told."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hermes.app import settings
from hermes.config.model import Config
from hermes.core.clock import Clock
from hermes.core.records import OutboxRow
from hermes.core.stores import Outbox
from hermes.gateway.dispatch import Dispatch
from hermes.gateway.homes import Homes
from hermes.gateway.ingest import AccessBook
from hermes.gateway.links import Links
from hermes.gateway.people import People
from hermes.gateway.replies import PlatformReplies
from hermes.runtime.supervisor import Supervisor
from hermes.store.database import Database
from hermes.store.homes import SqliteHomes
from hermes.store.people import SqlitePeople


def make_people(
    config: Config,
    db: Database,
    access: AccessBook,
    outbox: Outbox,
    replies: PlatformReplies,
    clock: Clock,
    supervisor: Supervisor,
    offer: Callable[[Sequence[OutboxRow]], None],
) -> People:
    """The same part for the gateway and for the command line without one."""
    policy = settings.pairing_policy(config)
    return People(SqlitePeople(db), access, outbox, replies, clock, supervisor, offer, policy)


def make_homes(
    config: Config,
    db: Database,
    dispatch: Dispatch,
    links: Links,
    supervisor: Supervisor,
) -> Homes:
    """The home channels and the commands of the house, which join the registry."""
    homes = Homes(
        SqliteHomes(db), dispatch.outbox, dispatch.replies, dispatch.platforms, links, dispatch.clock, supervisor,
        dispatch.courier.offer, settings.home_channels(config),
    )  # fmt: skip
    dispatch.commands.add(*homes.specs)
    return homes
