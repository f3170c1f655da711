"""Which platforms may be called at ``/hooks/NAME``: those whose adapter checks that it is they who call."""

from __future__ import annotations

from collections.abc import Callable

from hermes.core.door import IsCalled
from hermes.gateway.platform_book import PlatformBook
from hermes.web.hooks import Hooks


def hooks_of(platforms: PlatformBook, on_answer: Callable[[str, int], None]) -> Hooks:
    """Addresses for the platforms that are configured; ``on_answer`` counts."""

    def find(name: str) -> IsCalled | None:
        platform = platforms.find(name)
        return platform if isinstance(platform, IsCalled) else None

    return Hooks(find, on_answer)
