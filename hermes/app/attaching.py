"""Everything that attachments need, wired: fetching, reading, listening, pictures for requests, retention (R22)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from hermes.agent.hearing import Hearing
from hermes.app import settings
from hermes.app.parts import Gateway, Machine
from hermes.config.model import Config
from hermes.core.attachments import Transcriber
from hermes.core.events import Address
from hermes.core.ports import SpeechProvider, Tool
from hermes.core.records import Priority
from hermes.gateway.attachments import Attachments, AttachmentSettings
from hermes.platforms.web.adapter import WebPlatform
from hermes.store.database import Database
from hermes.store.media import SqliteMedia
from hermes.store.spool import Spool
from hermes.tools.attachments import ReadAttachment
from hermes.tools.send_file import SendFile

NOTICE_SECONDS = 3600.0
"""A notice about what cannot be listened to is worth nothing later."""


def media_store(config: Config, db: Database, machine: Machine) -> SqliteMedia:
    """Where files are kept: ``HERMES_HOME/media``."""
    media = SqliteMedia(
        db, machine.home / "media", machine.offload, max_pixels=config.gateway.media_max_pixels
    )
    media.read_seconds = config.gateway.media_timeout
    return media


def attachment_tools(config: Config, media: SqliteMedia, spool: Spool, machine: Machine) -> Sequence[Tool]:
    """What a model may do with files that people sent, and with those that it sends."""
    access, limit = settings.file_access(config, machine.home), config.gateway.media_max_bytes
    return (
        ReadAttachment(media, machine.offload, lambda: media.read_seconds),
        SendFile(access, machine.offload, spool.put, lambda: limit),
    )


def attach(gateway: Gateway, machine: Machine, media: SqliteMedia, spool: Spool) -> Gateway:
    """The same gateway, whose turns fetch what people attach and whose requests find their pictures."""
    config = gateway.config
    gateway.media, gateway.spool, gateway.sweep.read_file = media, spool, spool.read
    gateway.runner.pipeline.repairs.pictures = media
    gateway.door.keep = media.put
    page = gateway.platforms.get("web")
    if isinstance(page, WebPlatform):
        page.read_file = media.read
    gateway.lane.attachments = Attachments(
        gateway.platforms, media, machine.offload, machine.clock, attachment_settings(config),
        transcriber=_transcriber(config, gateway, machine), tell=_tell(gateway, machine),
        checkpoints=machine.checkpoints,
    )  # fmt: skip
    return gateway


def reattach(gateway: Gateway, machine: Machine, config: Config) -> None:
    """The keys of attachments as they are now."""
    if gateway.media is not None and gateway.lane.attachments is not None:
        gateway.media.max_pixels = config.gateway.media_max_pixels
        gateway.media.read_seconds = config.gateway.media_timeout
        gateway.lane.attachments.settings = attachment_settings(config)
        gateway.lane.attachments.transcriber = _transcriber(config, gateway, machine)


def attachment_settings(config: Config) -> AttachmentSettings:
    """``gateway.media_*``."""
    g = config.gateway
    return AttachmentSettings(g.media_max_bytes, g.media_timeout, g.media_concurrency, g.media_text_chars)


def _transcriber(config: Config, gateway: Gateway, machine: Machine) -> Transcriber | None:
    name, model = config.transcription.provider, config.transcription.model
    if not name:
        return None
    providers, repairs = gateway.providers, gateway.runner.pipeline.repairs

    def find() -> SpeechProvider | None:
        provider = providers.get(name)
        return provider if isinstance(provider, SpeechProvider) else None

    return Hearing(
        name, model, find, gateway.governor, machine.clock, machine.random,
        settings.recovery_policy(config, machine.environment.variables), lambda: repairs.pools.get(name),
    )  # fmt: skip


def _tell(gateway: Gateway, machine: Machine) -> Callable[[Address, str], Awaitable[None]]:
    async def tell(address: Address, text: str) -> None:
        now = machine.clock.now()
        notice = gateway.replies.reply(address, None, text, Priority.NOTICE)
        rows = await gateway.outbox.enqueue([replace(notice, expires_at=now + NOTICE_SECONDS)], now)
        gateway.courier.offer(rows)

    return tell
