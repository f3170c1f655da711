"""What the control API needs of a simulated chat platform."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from hermes.simulators.loopback import Loopback

__all__ = ["ChatCall", "ChatSimulator", "Order"]

Order: TypeAlias = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class ChatCall:
    """One call of the bot. `fault` names what was done to it, `at` is monotonic seconds."""

    method: str
    params: dict[str, Any]
    at: float
    files: dict[str, bytes] = field(default_factory=dict)
    fault: str = ""


class ChatSimulator(Loopback):
    """A loopback server of a chat platform that can be steered and read from another process."""

    calls: list[ChatCall]

    def orders(self) -> Mapping[str, Order]:
        """What POST /NAME does: each takes the request's JSON and returns what can be JSON."""
        raise NotImplementedError

    def condition(self) -> Mapping[str, Any]:
        """What GET /state tells beside what every simulator tells."""
        raise NotImplementedError

    def chat(self, chat: Any) -> Sequence[Any]:
        """The bot's messages that stand in the chat, as dataclasses, in order."""
        raise NotImplementedError

    def texts(self, chat: Any) -> list[str]:
        """Their texts."""
        raise NotImplementedError

    def called(self, method: str) -> list[ChatCall]:
        """The calls of one method."""
        return [call for call in self.calls if call.method == method]

    def cycles(self) -> int:
        """How well the bot listens at this moment: 0 when it does not."""
        raise NotImplementedError
