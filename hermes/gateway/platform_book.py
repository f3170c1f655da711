"""Which platforms there are and whether each can be sent to now."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from hermes.core.errors import TargetUnknown
from hermes.core.ports import Platform


class PlatformBook:
    """Adapters by name, and their links' readiness as the links report it."""

    def __init__(self, platforms: Iterable[Platform]) -> None:
        self._platforms = {p.name: p for p in platforms}
        self._up: set[str] = {p.name for p in self._platforms.values() if p.delivers_at_commit}
        self._proven: dict[str, float] = {}
        self._on_up: list[Callable[[str], None]] = []

    def __iter__(self) -> Iterator[Platform]:
        return iter(self._platforms.values())

    def get(self, name: str) -> Platform:
        """Raises TargetUnknown when no such platform is configured."""
        try:
            return self._platforms[name]
        except KeyError:
            known = ", ".join(sorted(self._platforms)) or "none"
            raise TargetUnknown(f"no platform {name!r} is configured (configured: {known})") from None

    def find(self, name: str) -> Platform | None:
        """The adapter, or None."""
        return self._platforms.get(name)

    def is_up(self, name: str) -> bool:
        """Whether sends may be tried."""
        return name in self._up

    def set_up(self, name: str, up: bool) -> None:
        """Reported by the link; a platform that comes up wakes those who wait for it."""
        if up and name not in self._up:
            self._up.add(name)
            for wake in self._on_up:
                wake(name)
        elif not up:
            self._up.discard(name)

    def prove(self, name: str, now: float) -> None:
        """A receive cycle completed at ``now`` (unix seconds): the platform certainly answers us."""
        self._proven[name] = now
        self.set_up(name, True)
        for wake in self._on_up:
            wake(name)

    def proven_at(self, name: str) -> float:
        """When the last receive cycle completed; 0: none yet."""
        return self._proven.get(name, 0.0)

    def on_up(self, wake: Callable[[str], None]) -> None:
        """Registers someone to be told when a platform can be sent to again."""
        self._on_up.append(wake)
