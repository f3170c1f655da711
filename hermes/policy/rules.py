"""The form of a rule, and the whole ordered table.

Order of the table (the first rule that matches decides):

1. what our own side of the wire saw (`rules_transport`): a refused connection needs no reading;
2. decisive provider codes (`rules_codes`): an empty balance is an empty balance whatever the status says;
3. anchored sentences (`rules_text`): status, type and exception class may all lie, the sentence is what is
left;
4. generic codes, statuses and exception classes (`rules_generic`): what is true if nothing better is known.

A word alone decides nothing: each pattern spans the relation ("exceeds … context", "try again in"), and
lines are matched without URLs, quotes and back-ticks (see `signals.normalise`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from hermes.core.failures import CallContext, FaultKind, Reason
from hermes.policy.signals import Signals

Test = Callable[[Signals, CallContext], bool]

RETRYABLE = frozenset({Reason.RATE_LIMIT, Reason.OVERLOADED, Reason.SERVER_ERROR, Reason.TIMEOUT})


@dataclass(frozen=True, slots=True)
class Rule:
    """Matches when every condition that it states holds. `retryable` None = as usual for the reason;
    `vacuous` True = the text says nothing, False = it says something."""

    name: str
    reason: Reason
    detail: str | None = None
    kinds: frozenset[FaultKind] | None = None
    statuses: frozenset[int] | None = None
    codes: re.Pattern[str] | None = None
    text: re.Pattern[str] | None = None
    unless: re.Pattern[str] | None = None
    exceptions: frozenset[str] | None = None
    provider: re.Pattern[str] | None = None
    vacuous: bool | None = None
    test: Test | None = None
    retryable: bool | None = None

    def matches(self, signals: Signals, context: CallContext) -> bool:
        """Whether this rule applies, its place in the table aside."""
        if self.kinds is not None and signals.kind not in self.kinds:
            return False
        if self.statuses is not None and signals.status not in self.statuses:
            return False
        if self.provider is not None and not self.provider.search(signals.provider):
            return False
        if self.codes is not None and not any(self.codes.fullmatch(code) for code in signals.codes):
            return False
        if self.exceptions is not None and not (self.exceptions & signals.exceptions):
            return False
        if self.text is not None and not self.text.search(signals.text):
            return False
        if self.unless is not None and self.unless.search(signals.text):
            return False
        if self.vacuous is not None and signals.vacuous is not self.vacuous:
            return False
        return self.test is None or self.test(signals, context)

    @property
    def is_retryable(self) -> bool:
        """Whether the unchanged request may succeed later."""
        return self.reason in RETRYABLE if self.retryable is None else self.retryable


def any_of(*patterns: str) -> re.Pattern[str]:
    """Alternatives over normalised text; `^` is the beginning of a message."""
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.MULTILINE)


def codes(patterns: str) -> re.Pattern[str]:
    """Codes to be matched in full, as patterns divided by white space."""
    return re.compile("|".join(patterns.split()))


def words(names: str) -> frozenset[str]:
    """Names divided by white space."""
    return frozenset(names.split())
