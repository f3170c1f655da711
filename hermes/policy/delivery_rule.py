"""The form of a rule about a failed platform call."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hermes.core.delivery import DeliveryReason, Sent
from hermes.policy.delivery_signals import Signals


@dataclass(frozen=True, slots=True)
class Rule:
    """Matches when one of its codes, texts or exceptions does, and its platform, status and sent-state do."""

    name: str
    reason: DeliveryReason
    detail: str | None = None
    codes: frozenset[str] = frozenset()
    text: re.Pattern[str] | None = None
    exceptions: frozenset[str] = frozenset()
    platform: str | None = None
    statuses: frozenset[int] | None = None
    sent: Sent | None = None
    answered: bool | None = None

    def matches(self, signals: Signals) -> bool:
        """Whether this rule applies, its place in the table aside."""
        if self.platform is not None and not signals.platform.startswith(self.platform):
            return False
        if self.statuses is not None and signals.status not in self.statuses:
            return False
        if self.sent is not None and signals.sent is not self.sent:
            return False
        if self.answered is not None and self.answered is not (signals.status is not None):
            return False
        if not (self.codes or self.text or self.exceptions):
            return True
        return (
            bool(self.codes & signals.codes)
            or (self.text is not None and self.text.search(signals.text) is not None)
            or bool(self.exceptions & signals.exceptions)
        )


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def any_of(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{p})" for p in patterns), re.MULTILINE)
