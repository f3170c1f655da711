"""The money of calls: reserved before each attempt, closed with what it cost (R16).

    step intent ─► first reservation ─┐
    reserve(target, request) ◄────────┴─ pipeline, before each attempt ─► Refusal: a cap stands in the way
    answered / failed                    after it, in memory
    take() ─► settlements                written with the step's result, T2, or by ``aclose``

Where neither the old nor the new attempt has a price there is nothing to reserve: one row stands for all the
attempts of a step, and costs no transaction of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, tzinfo

from hermes.agent.endings import cut_off_answer
from hermes.agent.journal import persist
from hermes.agent.targets import Target
from hermes.core.clock import Clock
from hermes.core.failures import FailureFacts
from hermes.core.ids import TurnId
from hermes.core.money import Caps, Charge, Ledger, Purpose, Quote, Refusal, Reservation, Settlement
from hermes.core.transcript import AssistantItem, ModelReply, ModelRequest, Usage
from hermes.policy.budget import (
    DEFAULT_OUTPUT,
    LEAST_OUTPUT,
    Bill,
    Spent,
    billing,
    cost,
    cost_of_failure,
    plus_usage,
)
from hermes.policy.trim import estimate_tokens, item_tokens, text_tokens

TOOL_TOKENS = 120
"""A tool's description and schema, where nothing is counted more exactly."""


NO_CAPS = Caps()


class Money:
    """What accounts are opened with. ``caps`` and ``zone`` are replaced at a reload and in force at once (R42)."""

    def __init__(
        self,
        ledger: Ledger,
        clock: Clock,
        *,
        caps: Caps = NO_CAPS,
        zone: tzinfo = UTC,
        count: Callable[[Target, ModelRequest], int] = lambda target, request: prompt_tokens(request),
    ) -> None:
        self.ledger = ledger
        self.clock = clock
        self.count = count
        self.caps = caps
        self.zone = zone

    def today(self) -> str:
        """The day that caps of a day count for, as an ISO date in the owner's zone (R41)."""
        return datetime.fromtimestamp(self.clock.now(), self.zone).strftime("%Y-%m-%d")

    def quote(
        self, turn: TurnId, purpose: Purpose, target: Target, tokens_in: int, output: int | None = None
    ) -> Quote:
        """What a call of ``target`` may cost; tokens are looked at only where there is a price."""
        wanted = output or target.max_output or DEFAULT_OUTPUT
        if target.context_window is not None:  # what is longer is shortened before it is sent
            tokens_in = min(tokens_in, target.context_window)
        return Quote(
            turn, purpose, target.provider.name, target.model, self.today(), target.price, tokens_in, wanted,
            LEAST_OUTPUT, self.caps,
        )  # fmt: skip

    def tokens(self, target: Target, request: ModelRequest) -> int:
        """Tokens of a request's prompt; 0 where nothing hangs on it, since counting is work."""
        return self.count(target, request) if target.price is not None else 0

    def open(self, turn: TurnId, purpose: Purpose = Purpose.TURN) -> Account:
        """An account for the calls of a turn, or for a call beside it (its ``turn`` pays)."""
        return Account(self, turn, purpose)


@dataclass(slots=True)
class _Attempts:
    """What the open row stands for so far."""

    calls: int = 0
    asked_of: tuple[str, str] = ("", "")
    heard: list[str] = field(default_factory=list)
    target: Target | None = None
    request: ModelRequest | None = None
    trying: bool = False
    state: Charge = Charge.RELEASED
    usd: float | None = 0.0
    usage: Usage = field(default_factory=Usage)


class Account:
    """The calls of one turn, or of one thing done beside it, one after the other.

    ``spent`` adds up what was used since it was opened; what a turn starts may share it.
    """

    def __init__(self, money: Money, turn: TurnId, purpose: Purpose) -> None:
        self._money = money
        self.turn = turn
        self.purpose = purpose
        self.spent = Spent()
        self._row: Reservation | None = None
        self._ended: list[Settlement] = []
        self._at = _Attempts()

    def begun(self, reservation: Reservation, purpose: Purpose = Purpose.TURN) -> None:
        """The step's own transaction has reserved for its first attempt."""
        self._close()
        self.purpose = purpose
        self._row = reservation

    async def reserve(self, target: Target, request: ModelRequest) -> ModelRequest | Refusal:
        """Before each attempt: the request, its answer bounded to what the money allows; or no call at all."""
        row = self._row
        asked_of = (target.provider.name, target.model)
        if row is not None and not self._at.calls and (row.provider, row.model) == asked_of:
            pass  # the step's intent reserved it
        elif row is not None and row.price is None and target.price is None:
            pass
        else:
            self._close()
            tokens = self._money.tokens(target, request)
            quote = self._money.quote(self.turn, self.purpose, target, tokens, request.max_output)
            found = await persist(self._money.clock, lambda: self._reserve(quote))
            self._ended.clear()
            if isinstance(found, Refusal):
                return found
            row = self._row = found
        self._at.calls += 1
        self._at.asked_of = asked_of
        self._at.heard.clear()
        self._at.target, self._at.request = target, request
        self._at.trying = True
        return request if row.output is None else replace(request, max_output=row.output)

    async def _reserve(self, quote: Quote) -> Reservation | Refusal:
        return await self._money.ledger.reserve(quote, tuple(self._ended), self._money.clock.now())

    def hear(self, on_text: Callable[[str], None]) -> Callable[[str], None]:
        """``on_text`` that also notes what came, in case nobody tells what it cost."""

        def hearing(text: str) -> None:
            self._at.heard.append(text)
            on_text(text)

        return hearing

    def answered(self, target: Target, request: ModelRequest, reply: ModelReply) -> None:
        """The attempt gave an answer or a part of one. A provider that reports no tokens is estimated."""
        used = reply.usage
        if not used.input_tokens and not used.output_tokens:
            said = AssistantItem(reply.text, reply.tool_calls)
            used = Usage(self._asked(), item_tokens(said))
        usd = cost(target.price, used) if target.price is not None else 0.0
        self._note(Charge.SETTLED, usd, used)

    def failed(self, target: Target, facts: FailureFacts, request: ModelRequest) -> None:
        """The attempt failed: what is certain not to be billed is not charged."""
        if not self._at.trying:
            return
        part = cut_off_answer(facts, request)
        if part is not None:  # the output limit was reached: it was paid for like any answer
            self.answered(target, request, part)
            return
        bill, reserved = billing(facts), self._row.usd if self._row is not None else 0.0
        came = text_tokens("".join(self._at.heard)) if self._at.heard else 0
        tokens = self._asked() if bill is not Bill.NOTHING else 0
        usd = cost_of_failure(bill, target.price, reserved, tokens, came)
        if bill is Bill.NOTHING:
            self._note(Charge.RELEASED, 0.0, Usage())
        else:
            self._note(Charge.CHARGED, usd, Usage(tokens, came))

    def take(self) -> tuple[Settlement, ...]:
        """All that has ended, to be written in the caller's transaction."""
        self._close()
        ended, self._ended = tuple(self._ended), []
        return ended

    async def aclose(self) -> None:
        """Writes all that has ended, for calls whose result has no transaction of its own."""
        ended = self.take()
        if ended:
            money = self._money
            await persist(money.clock, lambda: money.ledger.settle(ended, money.clock.now()))

    def _asked(self) -> int:
        """The prompt's tokens of the attempt under way, estimated."""
        target, request = self._at.target, self._at.request
        return self._money.count(target, request) if target is not None and request is not None else 0

    def _note(self, state: Charge, usd: float | None, used: Usage) -> None:
        self._at.trying = False
        if _WEIGHT[state] >= _WEIGHT[self._at.state]:
            self._at.state = state
        self._at.usd = usd
        self._at.usage = plus_usage(self._at.usage, used)
        paid = self._row.usd if usd is None and self._row is not None else usd or 0.0
        self.spent = self.spent.plus(tokens=used.input_tokens + used.output_tokens, usd=paid)

    def _close(self) -> None:
        """The open row, if any, has had its last attempt; one never used is given back."""
        if self._row is not None:
            if self._at.trying:  # cancelled in the middle
                came = text_tokens("".join(self._at.heard)) if self._at.heard else 0
                price, reserved = self._row.price, self._row.usd
                tokens = self._asked()
                usd = cost_of_failure(Bill.WHAT_CAME, price, reserved, tokens, came)
                self._note(Charge.CHARGED, usd, Usage(tokens, came))
            provider, model = self._at.asked_of
            self._ended.append(
                Settlement(self._row.id, self._at.state, self._at.usage, self._at.usd, provider, model, self._at.calls)
            )
        self._row = None
        self._at = _Attempts()


_WEIGHT = {Charge.RELEASED: 0, Charge.CHARGED: 1, Charge.SETTLED: 2}


def prompt_tokens(request: ModelRequest) -> int:
    """A request's prompt: its items, system text and tools."""
    return estimate_tokens(request.items) + text_tokens(request.system) + TOOL_TOKENS * len(request.tools)
