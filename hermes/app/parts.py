"""What the composition root holds: the process's means (Machine) and all wired parts (Gateway)."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from hermes.agent.governor import Governor
from hermes.agent.toolbox import Toolbox
from hermes.agent.turn import TurnLoop
from hermes.app.figures import Figures
from hermes.config.environment import Environment
from hermes.config.model import Config
from hermes.core.clock import Clock
from hermes.core.ports import Provider
from hermes.gateway.actions import Actions
from hermes.gateway.courier import Courier
from hermes.gateway.dispatch import Dispatch
from hermes.gateway.door import Door
from hermes.gateway.health import HealthBook
from hermes.gateway.homes import Homes
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
from hermes.gateway.sweep import Sweep
from hermes.gateway.view import Views
from hermes.providers.network import Network
from hermes.runtime.checkpoints import Checkpoints
from hermes.runtime.exclusive import ExclusiveNames
from hermes.runtime.lag import LagMonitor
from hermes.runtime.offload import Offload
from hermes.runtime.redaction import Redactor
from hermes.runtime.supervisor import Supervisor
from hermes.store.database import Database
from hermes.store.media import SqliteMedia
from hermes.store.outbox import SqliteOutbox
from hermes.store.questions import SqliteTurnsAndQuestions
from hermes.store.sessions import SqliteSessions
from hermes.store.spool import Spool


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
    exclusive: ExclusiveNames | None = None
    on_secret: Callable[[str], None] = lambda secret: None
    """Told each secret that enters the process after its start (R40)."""
    redact: Callable[[str], str] = field(default_factory=lambda: Redactor().redact)
    """A text without the secrets that are known."""


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
    governor: Governor
    outages: Outages
    people: People
    homes: Homes
    media: SqliteMedia | None = None
    spool: Spool | None = None
    draining: bool = False
    started: bool = False


