"""Turns text into a delivery for an address: the platform renders, the store's destination is marked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hermes.core.clock import Clock
from hermes.core.events import Address
from hermes.core.ids import SessionId
from hermes.core.ports import Buttons, SendsFiles
from hermes.core.records import Asked, NewDelivery, OutgoingPart, Priority
from hermes.core.transcript import FileRef
from hermes.gateway.platform_book import PlatformBook
from hermes.runtime.offload import Offload, OffloadFull

LOOP_CHARS = 5_000
"""A longer text may take more than 50 ms to render."""


class PlatformReplies:
    """Implements ``ports.Replies``. ``max_age`` in seconds bounds how late a reply may still arrive."""

    def __init__(
        self, platforms: PlatformBook, clock: Clock, max_age: float, offload: Offload | None = None
    ) -> None:
        self._platforms = platforms
        self._offload = offload
        self._clock = clock
        self.max_age = max_age

    def reply(
        self,
        address: Address,
        session: SessionId | None,
        text: str,
        priority: Priority = Priority.FINAL,
        *,
        options: Sequence[tuple[str, str]] = (),
    ) -> NewDelivery:
        """Raises Poison when the platform cannot render the text, TargetUnknown when it is not configured."""
        platform = self._platforms.get(address.platform)
        parts = platform.render(text)
        if options and isinstance(platform, Buttons):
            parts = platform.with_buttons(parts, options)
        return self._delivery(address, session, parts, priority)

    async def answer(self, address: Address, session: SessionId | None, text: str) -> NewDelivery:
        """As ``reply``; a text that would hold the loop is rendered in the cpu pool."""
        if len(text) <= LOOP_CHARS or self._offload is None:
            return self.reply(address, session, text)
        render = self._platforms.get(address.platform).render
        try:
            parts = await self._offload.run("cpu", render, text)
        except OffloadFull:
            parts = render(text)  # late for everybody, but not lost
        return self._delivery(address, session, parts, Priority.FINAL)

    def _delivery(
        self, address: Address, session: SessionId | None, parts: tuple[OutgoingPart, ...], priority: Priority
    ) -> NewDelivery:
        platform = self._platforms.get(address.platform)
        return NewDelivery(
            address,
            parts,
            priority,
            self._clock.now() + self.max_age,
            platform.delivers_at_commit,
            session,
            platform.creates_are_safe,
        )

    def with_files(self, delivery: NewDelivery, files: Sequence[FileRef]) -> NewDelivery:
        """See ``ports.Replies``; a platform that takes no files is told their names."""
        platform = self._platforms.get(delivery.address.platform)
        if isinstance(platform, SendsFiles):
            return replace(delivery, parts=(*delivery.parts, *map(platform.file_part, files)))
        named = "\n".join(f"📎 {file.name} ({file.size} bytes) cannot be sent here." for file in files)
        return replace(delivery, parts=(*delivery.parts, *platform.render(named)))

    def closed(self, asked: Asked, prompt: str, answer: str) -> NewDelivery | None:
        """What takes the place of the last part of a question once it is answered: the answer, and no buttons.

        None where the platform has none. Raises Poison.
        """
        platform = self._platforms.find(asked.address.platform)
        if not isinstance(platform, Buttons):
            return None
        told = f"✓ {answer}"
        rendered = platform.render(f"{prompt}\n\n{told}")
        last = rendered[-1] if len(rendered) == asked.parts else platform.render(told)[-1]
        until = self._clock.now() + self.max_age
        return NewDelivery(asked.address, (last,), Priority.NOTICE, until, edits=asked.message)
