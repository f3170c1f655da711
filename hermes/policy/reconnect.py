"""How a platform's link heals: one pure step per event (DESIGN §5 "Links").

    up ── fails ──► retrying (same link: 1, 2, 4, 8 s) ── fifth in a row ──► lost (fresh client: 30 s
    doubling to 300 s, +0–20 %, ten attempts) ──► parked (probed every park_probe, for ever)

409 walks the same stairs under the name *conflict* and never changes it; what only a person can mend is
*refused* and probed slowly from the start. Any completed cycle heals everything.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import assert_never

from hermes.core.delivery import DeliveryReason, DeliveryVerdict
from hermes.core.links import Connected, CycleCompleted, CycleFailed, Link, LinkEvent, LinkState, ReconnectNow

SAME_LINK_DELAYS = (1.0, 2.0, 4.0, 8.0)
JITTER = 0.2
NOTE = 200
"""Characters of the platform's own words in a sentence."""
_PERSONS = frozenset({DeliveryReason.PERMANENT_AUTH, DeliveryReason.FATAL_CONFIG})
_QUIET_PROBES = 4
"""So many park_probe intervals without a conflict end an episode. Two programs that poll with one token
let each other through now and then; without this each such cycle would earn a new notice."""


@dataclass(frozen=True, slots=True)
class ReconnectPolicy:
    """``gateway.reconnect``; seconds."""

    base: float = 30.0
    cap: float = 300.0
    max_attempts: int = 10
    park_probe: float = 900.0


def initial(platform: str, now: float) -> Link:
    """A link before its first try, which is at once."""
    return Link(platform, LinkState.STARTING, since=now, next_try_at=now)


def step(link: Link, event: LinkEvent, *, policy: ReconnectPolicy, now: float, u: float) -> Link:
    """The link after the event. `now` in unix seconds, `u` in [0, 1).

    ``notice`` is true in the result only if the owner is to be told of this very step: at most once for each
    of conflict, parked and refused until a cycle completes, and for conflict until it stayed away.
    """
    match event:
        case Connected():
            return replace(link, rebuild_client=False, notice=False)
        case CycleCompleted():
            return _healed(link, now)
        case ReconnectNow():
            return replace(link, next_try_at=now, rebuild_client=True, notice=False, attempts=0)
        case CycleFailed(verdict, said):
            failed = _failed(link, verdict, policy, now, u)
            return replace(failed, note=" ".join(said.split())[:NOTE] if verdict.reason in _PERSONS else failed.note)
        case _:
            assert_never(event)


def _healed(link: Link, now: float) -> Link:
    return Link(
        link.platform,
        LinkState.UP,
        since=link.since if link.state is LinkState.UP else now,
        next_try_at=now,
        conflict_at=link.conflict_at,
        last_cycle_at=now,
    )


def _failed(link: Link, verdict: DeliveryVerdict, policy: ReconnectPolicy, now: float, u: float) -> Link:
    failures = link.failures + 1
    reconnecting = failures > len(SAME_LINK_DELAYS)
    attempts = link.attempts + 1 if link.failures > len(SAME_LINK_DELAYS) else 0
    state = _state(link, verdict, attempts, reconnecting, policy)
    if state in (LinkState.PARKED, LinkState.REFUSED) or attempts >= policy.max_attempts:
        delay = policy.park_probe
    elif reconnecting:
        delay = reconnect_delay(attempts, u, policy)
    else:
        delay = SAME_LINK_DELAYS[failures - 1]
    asked = verdict.retry_after or 0.0
    delay = max(delay, min(asked, policy.park_probe))
    conflict = verdict.reason is DeliveryReason.CONFLICT
    notice = _is_news(link, state, policy, now)
    return replace(
        link,
        state=state,
        since=link.since if link.failures else now,
        next_try_at=now + delay,
        failures=failures,
        attempts=attempts,
        rebuild_client=reconnecting or state is LinkState.REFUSED,
        notice=notice,
        told=link.told | {state} if notice else link.told,
        conflict_at=now if conflict else link.conflict_at,
        reason=verdict.reason,
        detail=verdict.detail,
    )


def _state(
    link: Link, verdict: DeliveryVerdict, attempts: int, reconnecting: bool, policy: ReconnectPolicy
) -> LinkState:
    if verdict.reason in _PERSONS or link.state is LinkState.REFUSED:
        return LinkState.REFUSED  # a probe that fails otherwise does not prove that somebody mended it
    if verdict.reason is DeliveryReason.CONFLICT:
        return LinkState.CONFLICT
    if attempts >= policy.max_attempts:
        return LinkState.PARKED
    return LinkState.LOST if reconnecting else LinkState.RETRYING


def _is_news(link: Link, state: LinkState, policy: ReconnectPolicy, now: float) -> bool:
    if state in link.told or state in (LinkState.RETRYING, LinkState.LOST):
        return False
    if state is LinkState.CONFLICT and link.conflict_at is not None:
        return now - link.conflict_at > _QUIET_PROBES * policy.park_probe
    return True


def reconnect_delay(attempts: int, u: float, policy: ReconnectPolicy) -> float:
    """Seconds before reconnection number `attempts` + 1: base · 2^attempts up to the cap, plus 0–20 %."""
    draw = min(max(u, 0.0), 1.0) if math.isfinite(u) else 1.0
    return float(min(policy.cap, policy.base * 2.0 ** min(max(attempts, 0), 32)) * (1.0 + JITTER * draw))


_CAUSES = {
    DeliveryReason.NETWORK_RETRYABLE: "it cannot be reached",
    DeliveryReason.FLOOD_WAIT: "it limits our rate",
    DeliveryReason.TIMEOUT_AMBIGUOUS: "it does not answer",
    DeliveryReason.FORMATTING: "it refuses our requests",
    DeliveryReason.TOO_LONG: "it refuses our requests as too large",
    DeliveryReason.PERMANENT_TARGET: "it denies us access",
    DeliveryReason.PERMANENT_AUTH: "it refuses the token",
    DeliveryReason.CONFLICT: "another program receives with the same token",
    DeliveryReason.FATAL_CONFIG: "the app lacks an intent, a scope or a setting",
    DeliveryReason.UNKNOWN: "it fails for an unknown reason",
}
_TOKEN_KEYS = {"slack": "bot_token and platforms.slack.app_token"}


def sentence(link: Link, *, now: float) -> str:
    """For status, health and notices: what is the case, since when, when it is tried next, what to edit."""
    since = f"for {_span(now - link.since)}"
    match link.state:
        case LinkState.STARTING:
            return f"{link.platform} is connecting ({since})."
        case LinkState.UP:
            return f"{link.platform} is connected ({since})."
        case LinkState.RETRYING | LinkState.LOST | LinkState.PARKED | LinkState.CONFLICT | LinkState.REFUSED:
            cause = _CAUSES[link.reason or DeliveryReason.UNKNOWN]
            if link.note and link.state is LinkState.REFUSED:
                cause = f"{cause}: {link.note}"
            left = link.next_try_at - now
            when = f"in {_span(left)}" if left >= 1.0 else "now"
            return f"{link.platform} is {link.state.value}: {cause} ({since}; next try {when}).{_cure(link)}"
        case _:
            assert_never(link.state)


def _cure(link: Link) -> str:
    key = f"platforms.{link.platform}.{_TOKEN_KEYS.get(link.platform, 'token')}"
    match link.reason:
        case DeliveryReason.PERMANENT_AUTH:
            return f" Put a valid token into {key}."
        case DeliveryReason.CONFLICT:
            return f" Stop the other program, or give this one its own bot: {key}."
        case DeliveryReason.FATAL_CONFIG if link.detail == "intents":
            return (
                " Switch on MESSAGE CONTENT INTENT in Discord's developer portal, on the application's page Bot under"
                " Privileged Gateway Intents."
            )
        case DeliveryReason.FATAL_CONFIG:
            return f" Mend the app's settings at the platform (and see platforms.{link.platform})."
        case _:
            return ""


def _span(seconds: float) -> str:
    whole = max(0, round(seconds))
    if whole < 120:
        return f"{whole} s"
    if whole < 7200:
        return f"{whole // 60} min"
    return f"{whole // 3600} h" if whole < 172_800 else f"{whole // 86_400} days"
