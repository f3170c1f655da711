"""Turns text into a delivery for an address: the platform renders, the store's destination is marked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hermes.core.clock import Clock
from hermes.core.events import Address
from hermes.core.ids import SessionId
from hermes.core.ports import Buttons, SendsFiles
from hermes.core.records import Asked, NewDelivery, Priority
from hermes.core.transcript import FileRef
from hermes.gateway.platform_book import PlatformBook


class PlatformReplies:
    """Implements ``ports.Replies``. ``max_age`` in seconds bounds how late a reply may still arrive."""

    def __init__(self, platforms: PlatformBook, clock: Clock, max_age: float) -> None:
        self._platforms = platforms
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
