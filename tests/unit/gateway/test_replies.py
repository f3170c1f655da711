"""A long answer is rendered beside the loop, and is the same that it would be on it."""

from __future__ import annotations

import threading

from hermes.core.events import Address
from hermes.core.records import OutgoingPart
from hermes.gateway.platform_book import PlatformBook
from hermes.gateway.replies import LOOP_CHARS, PlatformReplies
from hermes.platforms.web.adapter import WebPlatform
from hermes.runtime.clock import SystemClock
from hermes.runtime.offload import Offload


class Watched(WebPlatform):
    """Remembers which threads rendered."""

    def __init__(self) -> None:
        super().__init__()
        self.threads: list[bool] = []

    def render(self, text: str) -> tuple[OutgoingPart, ...]:
        self.threads.append(threading.current_thread() is threading.main_thread())
        return super().render(text)


async def test_a_long_answer_is_rendered_in_a_thread_and_a_short_one_on_the_loop() -> None:
    platform, offload = Watched(), Offload()
    try:
        replies = PlatformReplies(PlatformBook([platform]), SystemClock(), 60.0, offload)
        here = Address("web", "web", "chat")
        for text in ("short **answer**", "a *long* answer. " * LOOP_CHARS):
            assert (await replies.answer(here, None, text)).parts == replies.reply(here, None, text).parts
    finally:
        offload.close()
    assert platform.threads == [True, True, False, True]
