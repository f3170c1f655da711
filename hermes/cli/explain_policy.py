"""``hermes explain policy``: every bound of every retry, as the running gateway would have it (promise 3)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

from hermes.app import settings
from hermes.app.loading import load
from hermes.cli.codes import OK
from hermes.cli.invocation import Invocation
from hermes.cli.screen import console, print_json, table
from hermes.config.environment import Environment
from hermes.config.model import Config
from hermes.config.sections import Overflow
from hermes.core.failures import Reason
from hermes.policy.backends import dead_ends
from hermes.policy.backoff import backoff
from hermes.policy.breaker import near
from hermes.policy.cures import CURES, SMALL_LIMITS, Repair
from hermes.policy.guardrails import Kind
from hermes.policy.reconnect import SAME_LINK_DELAYS
from hermes.policy.recovery import RecoveryPolicy, backends_of, bound
from hermes.policy.rules import RETRYABLE

Row = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and its rows: what is bounded, and by what."""

    title: str
    rows: tuple[Row, ...]


def explain_policy(config_path: Path | None, invocation: Invocation) -> int:
    """Prints targets, dead ends, bounds, waits, cures and what was learned. Raises ConfigError."""
    environment = Environment.read()
    config = load(environment, config_path).config
    policy = settings.recovery_policy(config, environment.variables)
    known = remembered(environment)
    if invocation.json:
        print_json({**as_dict(policy, config), "learned": known})
        return OK
    screen = console()
    for section in (
        _targets(policy),
        _dead_ends(policy),
        _calls(policy, config),
        _loops(config),
        _outages(config),
        _cures(policy),
        _delivery(config),
        _links(config),
        _learned(known),
    ):
        if not section.rows:
            continue
        lines = table("", "", title=section.title)
        lines.show_header = False
        for row in section.rows:
            lines.add_row(*row)
        screen.print(lines)
        screen.print()
    return OK


def as_dict(policy: RecoveryPolicy, config: Config) -> dict[str, object]:
    """For programs; seconds."""
    return {
        "targets": [
            {"name": t.name, "context_window": t.context_window, "max_output": t.max_output}
            for t in policy.targets
        ],
        "dead_ends": list(_dead(policy)),
        "retries_per_target": policy.retries,
        "waits": [list(_range(policy, n)) for n in range(1, policy.retries + 1)],
        "retry_after_cap": policy.retry_after_cap,
        "most_calls": bound(policy),
        "most_continuations": policy.continuations,
        "most_waiting": longest_waiting(policy),
        "turn_deadline": config.agent.turn_deadline,
        "overflow": config.agent.overflow.value,
        "repairs": {r.value: policy.limit(r) for r in sorted(policy.available)},
        "cures": {_case(*case): [r.value for r in row] for case, row in CURES.items()},
        "retried": sorted(reason.value for reason in Reason if _may_pass(reason)),
        "fewer_retries": {_case(*case): limit for case, limit in SMALL_LIMITS.items()},
        "circuit": asdict(settings.breaker_policy(config)),
        "circuit_on_this_machine": asdict(near(settings.breaker_policy(config))),
        "tool_loops": asdict(settings.guardrails(config)),
        "parked_at_most": config.gateway.max_age,
        "delivery": config.gateway.delivery.model_dump(mode="json"),
        "reconnect": config.gateway.reconnect.model_dump(mode="json"),
    }


def _targets(policy: RecoveryPolicy) -> Section:
    rows = []
    for place, target in enumerate(policy.targets):
        window = f"window {target.context_window:,} tokens" if target.context_window else "window unknown"
        role = "primary" if place == 0 else f"fallback {place}"
        rows.append((role, f"{target.name}, {window}"))
    return Section("Who is asked", tuple(rows))


def _dead(policy: RecoveryPolicy) -> tuple[str, ...]:
    return dead_ends([(t.name, t.backend, t.context_window) for t in policy.targets])


def _dead_ends(policy: RecoveryPolicy) -> Section:
    return Section("Dead ends", tuple(("", text) for text in _dead(policy)))


def longest_waiting(policy: RecoveryPolicy) -> float:
    """The most seconds that one call may spend between its attempts; the turn's deadline comes first."""
    longest = max(policy.retry_after_cap, policy.cap)
    return backends_of(policy) * max(0, policy.retries) * longest


def _calls(policy: RecoveryPolicy, config: Config) -> Section:
    waits = ", ".join("{:g}–{:g} s".format(*_range(policy, n)) for n in range(1, policy.retries + 1))
    limits = {repair: policy.limit(repair) for repair in sorted(policy.available)}
    limits[Repair.REBUILD_TRANSPORT] = 1
    repairs = ", ".join(f"{_words(repair)} (at most {limit})" for repair, limit in limits.items() if limit)
    count = backends_of(policy)
    own = count * (max(0, policy.retries) + 2)
    sum_ = f"{count} × ({policy.retries} retries + 1 + 1 fresh connections) + {bound(policy) - own} repairs"
    return Section(
        "A model call that fails",
        (
            ("retries", f"{policy.retries} after the first attempt, for each target"),
            ("waits between", waits or "none"),
            (
                "a stated wait",
                f"is obeyed up to {policy.retry_after_cap:g} s; longer: the next target, else the turn waits on disk",
            ),
            ("repairs", repairs),
            ("an overflow", _overflow(config)),
            ("most calls in all", f"{bound(policy)} = {sum_}; whatever happens, each time a step is asked"),
            ("cut off answers", f"are asked to go on at most {policy.continuations} times, beside that bound"),
            (
                "time of a turn",
                f"{config.agent.turn_deadline:g} s of active time, {config.agent.max_turns} steps",
            ),
        ),
    )


def _overflow(config: Config) -> str:
    if config.agent.overflow is Overflow.FALLBACK:
        return "goes to a fallback with a larger known window first, else it is compacted"
    return "is compacted first; then a fallback with a larger known window is asked"


def _loops(config: Config) -> Section:
    found = settings.guardrails(config)
    on = {"warned of": found.warnings_enabled, "blocked": found.hard_stop_enabled}
    rows = [
        (kind.value, ", ".join(f"{stage} after {counts.of(kind)}" for stage, counts in stages))
        for kind in Kind
        if (stages := [s for s in (("warned of", found.warn_after), ("blocked", found.block_after)) if on[s[0]]])
    ]
    if found.hard_stop_enabled:
        rows.append(("the turn ends", f"with its blocked call number {found.halt_after_blocks}"))
    return Section("Tool calls that lead nowhere, counted within one turn", tuple(rows))


def _outages(config: Config) -> Section:
    circuit = settings.breaker_policy(config)
    own = near(circuit)
    return Section(
        "A model that stays out of reach, for all chats together",
        (
            ("its circuit opens", f"after {circuit.failures} failures in a row, or one call's whole recovery"),
            (
                "then",
                f"no call but one probe, after {circuit.base:g} s doubling to {circuit.cap:g} s "
                f"(a refused connection: each {circuit.base:g} s); a fallback is asked meanwhile",
            ),
            ("on this machine", f"the first pause is {own.base:g} s, while nobody listens at most {own.cheap:g} s"),
            ("no fallback answers", "the turn waits on disk; one notice a chat; /stop takes it back"),
            ("it is back", "the oldest first, one a person in turn, at the rate that is granted"),
            ("given up", f"after {config.gateway.max_age / 3600:g} h, with a sentence"),
        ),
    )


def _cures(policy: RecoveryPolicy) -> Section:
    rows = []
    for reason in Reason:
        for case in dict.fromkeys([(reason, None), *(c for c in (*CURES, *SMALL_LIMITS) if c[0] is reason)]):
            text = _cure(policy, case)
            if text:
                rows.append((_case(*case), text))
    return Section("What cures which failure, in this order; then another target", tuple(rows))


def _cure(policy: RecoveryPolicy, case: tuple[Reason, str | None]) -> str:
    steps = [_step(policy, repair) for repair in CURES.get(case, ()) if repair is not Repair.REBUILD_TRANSPORT]
    if Repair.REBUILD_TRANSPORT in CURES.get(case, ()):
        steps.append("fresh connections")
    if case in SMALL_LIMITS:
        count = SMALL_LIMITS[case]
        steps.append("one plain retry" if count == 1 else f"{count} plain retries")
    elif _may_pass(case[0]) and case[1] is None:
        steps.append("retries")
    if case == (Reason.TIMEOUT, None):
        steps.append("fresh connections once")
    return ", ".join(steps) or ("" if case[1] else "no retry: nothing changes by waiting")


def _step(policy: RecoveryPolicy, repair: Repair) -> str:
    if repair not in policy.available:
        return f"[{_words(repair)}]"
    return _words(repair) if policy.limit(repair) else f"({_words(repair)}: not with these keys)"


def _may_pass(reason: Reason) -> bool:
    """Whether failures of this kind are usually retried; a rule may know better for one of them."""
    return reason in RETRYABLE or (reason, None) in SMALL_LIMITS


def remembered(environment: Environment) -> list[dict[str, object]] | None:
    """What was learned about models; None where nobody can be asked just now."""
    from hermes.cli.control_client import NoGateway, Refused
    from hermes.cli.learned import known
    from hermes.config.errors import ConfigError
    from hermes.core.errors import ForeignHome, StoreUnavailable

    try:
        return known(environment)
    except (NoGateway, Refused, ForeignHome, StoreUnavailable, ConfigError, OSError):
        return None


def _learned(facts: list[dict[str, object]] | None) -> Section:
    if facts is None:
        return Section("What was learned", (("", "cannot be read now; `hermes learned list` says why"),))
    rows = tuple((str(fact["target"]), str(fact["says"])) for fact in facts)
    return Section("What was learned, until it is tried out again", rows)


def _delivery(config: Config) -> Section:
    sent = config.gateway.delivery
    return Section(
        "A message that cannot be sent",
        (
            ("retries of a sweep", f"{sent.max_retries}, first wait {sent.base_delay:g} s, doubling"),
            (
                "unknown outcome",
                "repeated once with a mark" if sent.uncertain == "mark" else "held for the owner",
            ),
            ("network down", "waits for the link; the message waits on disk"),
            ("given up", f"after {config.gateway.max_age / 3600:g} h, or when the platform refuses for good"),
        ),
    )


def _links(config: Config) -> Section:
    link = config.gateway.reconnect
    quick = ", ".join(f"{seconds:g}" for seconds in SAME_LINK_DELAYS)
    return Section(
        "A platform that cannot be reached",
        (
            ("quick tries", f"after {quick} s on the same link"),
            ("then", f"{link.max_attempts} tries, {link.base:g} s doubling to {link.cap:g} s"),
            ("then", f"parked: one probe each {link.park_probe:g} s, for ever; one notice"),
            ("refused token", f"parked at once: one probe each {link.park_probe:g} s"),
        ),
    )


def _range(policy: RecoveryPolicy, retry: int) -> tuple[float, float]:
    """The shortest and the longest wait before a retry."""
    low, high = (backoff(retry, u, base=policy.base, cap=policy.cap, ratio=policy.ratio) for u in (0.0, 1.0))
    return low, high


def _case(reason: Reason, detail: str | None) -> str:
    return f"{reason.value}/{detail}" if detail else reason.value


def _words(repair: Repair) -> str:
    return repair.value.replace("_", " ")
