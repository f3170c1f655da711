"""Wires who is let in: offers to strangers, /pair, and `hermes pairing`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hermes.app import settings
from hermes.config.model import Config
from hermes.core.clock import Clock
from hermes.core.records import OutboxRow
from hermes.core.stores import Outbox
from hermes.gateway.ingest import AccessBook
from hermes.gateway.people import People
from hermes.gateway.replies import PlatformReplies
from hermes.runtime.supervisor import Supervisor
from hermes.store.database import Database
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
