"""/usage and ``hermes usage``: what calls took and cost, and what is left of the budgets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass

from hermes.core.ids import SessionId
from hermes.core.money import Caps, Ledger, UsageLine, UsageReport
from hermes.core.principals import PrincipalId
from hermes.policy.budget import dollars

DAYS = 7


@dataclass(frozen=True, slots=True)
class UsageBook:
    """Reads the ledger. ``caps`` and ``today`` (an ISO date of the owner's zone) are asked each time."""

    ledger: Ledger
    caps: Callable[[], Caps]
    today: Callable[[], str]

    async def text(self, session: SessionId, principal: PrincipalId | None) -> str:
        """What the person may know: their conversation, their days, their models, the budgets (R37)."""
        report = await self.ledger.usage(session, principal, self.today(), DAYS)
        lines = [f"This conversation: {_line(report.session)}", f"You today ({report.day}): {_line(report.today)}"]
        lines += [f"• {one.name}: {_line(one)}" for one in report.models]
        earlier = [one for one in report.days if one.name != report.day]
        if earlier:
            lines += ["You before:", *(f"• {one.name}: {_line(one)}" for one in earlier)]
        return "\n".join([*lines, *_budgets(self.caps(), report)])

    async def as_dict(self, days: int = DAYS) -> dict[str, object]:
        """Everybody's, for the owner's command line."""
        report = await self.ledger.usage(None, None, self.today(), days)
        return {
            "day": report.day,
            "today": asdict(report.today),
            "models": [asdict(one) for one in report.models],
            "days": [asdict(one) for one in report.days],
            "caps_usd": asdict(self.caps()),
        }


def _line(one: UsageLine) -> str:
    if not one.calls:
        return "nothing yet"
    calls = "1 call" if one.calls == 1 else f"{one.calls:,} calls"
    cached = f" ({one.cached_tokens:,} cached)" if one.cached_tokens else ""
    return f"{calls}, {one.input_tokens:,} tokens in{cached}, {one.output_tokens:,} out, {_money(one)}"


def _money(one: UsageLine) -> str:
    if one.unpriced >= one.calls and not one.usd:
        return "price unknown"
    unknown = f" and {one.unpriced:,} of unknown price" if one.unpriced else ""
    return f"{dollars(one.usd)}{unknown}"


def _budgets(caps: Caps, report: UsageReport) -> list[str]:
    scopes = (
        ("this conversation", caps.session, report.session.usd),
        ("you today", caps.person_day, report.today.usd),
        ("everybody today", caps.day, report.everybody.usd),
    )
    found = [f"• one turn: up to {dollars(caps.turn)}"] if caps.turn else []
    found += [
        f"• {whose}: {dollars(used)} of {dollars(cap)}, {dollars(max(0.0, cap - used))} left"
        for whose, cap, used in scopes
        if cap
    ]
    return ["Budgets:", *found] if found else ["No budget is set."]
