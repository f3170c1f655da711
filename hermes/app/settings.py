"""From the configuration's sections to the settings objects of the parts; the one place that knows both."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from hermes.agent.fitting import PLAIN_WINDOW
from hermes.agent.repairs import AVAILABLE_REPAIRS
from hermes.agent.targets import Target
from hermes.app.backends import recovery_targets, repair_limits
from hermes.config.adapters import ChatPlatformConfig, ModelSpec, PlatformConfig, ProviderConfig
from hermes.config.model import Config
from hermes.config.prices import price_of
from hermes.config.sections import Overflow
from hermes.core.delivery import Uncertain
from hermes.core.money import Caps
from hermes.core.people import PairingPolicy
from hermes.core.ports import Provider
from hermes.gateway.dispatch import DispatchSettings
from hermes.gateway.health import HealthSettings
from hermes.gateway.view import ViewSettings
from hermes.platforms.telegram.config import TelegramConfig
from hermes.platforms.web.config import WebConfig
from hermes.policy.access import AccessPolicy
from hermes.policy.breaker import BreakerPolicy, policy_for
from hermes.policy.delivery import SweepPolicy
from hermes.policy.guardrails import Counts, GuardSettings
from hermes.policy.images import known_to_see
from hermes.policy.rate_limit import UNPROVEN_CALLS, Limits
from hermes.policy.reconnect import ReconnectPolicy
from hermes.policy.recovery import RecoveryPolicy
from hermes.policy.reset import ResetPolicy
from hermes.providers.anthropic.config import LONG_CONTEXT, AnthropicConfig
from hermes.tools.files import FileAccess
from hermes.web.server import WebSettings


def access_policies(config: Config) -> dict[str, AccessPolicy]:
    """One policy for each enabled platform: default deny."""
    return {
        name: AccessPolicy(
            allow_all=platform.allow_all_users,
            allowed_users=frozenset(str(u) for u in platform.allowed_users),
            owners=frozenset(platform.owners),
            guests=frozenset(platform.guests),
            allowed_roles=frozenset(platform.allowed_roles),
            allowed_chats=frozenset(platform.allowed_chats),
            pairing=platform.pairing,
            require_mention=platform.require_mention,
            free_chats=frozenset(platform.free_chats),
        )
        for name, platform in config.platforms.items()
        if platform.enabled and isinstance(platform, ChatPlatformConfig)
    }


def targets(config: Config, providers: Mapping[str, Provider]) -> list[Target]:
    """The primary, then the fallbacks; all references were checked at load."""
    chosen = [config.model, *config.fallback_providers]
    return [target_of(config, providers, choice.provider, choice.model) for choice in chosen]


def target_of(config: Config, providers: Mapping[str, Provider], provider: str, model: str) -> Target:
    """One model of a provider, with what is configured about it."""
    spec = config.providers[provider].models.get(model)
    known = spec if spec is not None else ModelSpec()
    return Target(
        providers[provider],
        model,
        known.context_window if spec is not None else None,
        known.max_output if spec is not None and "max_output" in spec.model_fields_set else None,
        known.tools,
        price_of(spec, model),
        images=known.images if "images" in known.model_fields_set else known_to_see(model),
        betas=_betas(config.providers[provider], known),
        most_images=config.agent.max_images,
    )


def _betas(provider: ProviderConfig, known: ModelSpec) -> tuple[str, ...]:
    """What Anthropic wants asked for by name before it takes more than its plain window."""
    wide = isinstance(provider, AnthropicConfig) and known.context_window > PLAIN_WINDOW
    return (LONG_CONTEXT,) if wide else ()


def caps(config: Config) -> Caps:
    """``agent.budget``."""
    budget = config.agent.budget
    return Caps(budget.turn_usd, budget.session_usd, budget.user_day_usd, budget.day_usd)


def provider_names(config: Config) -> list[str]:
    """The providers that are asked for anything: answers, or the words of a recording."""
    chosen = [config.model.provider, *(f.provider for f in config.fallback_providers), config.transcription.provider]
    chosen.append(config.compression.provider)
    return sorted({name for name in chosen if name})


def recovery_policy(config: Config, environ: Mapping[str, str]) -> RecoveryPolicy:
    """``agent.*`` as the planner's bounds; ``environ`` holds the keys that variables give."""
    agent = config.agent
    return RecoveryPolicy(
        targets=recovery_targets(config, environ),
        retries=agent.api_max_retries,
        base=agent.retry_base,
        cap=agent.retry_cap,
        retry_after_cap=agent.retry_after_cap,
        repair_limits=repair_limits(config, environ),
        available=AVAILABLE_REPAIRS,
        can_park=True,
        prefer_bigger_window=agent.overflow is Overflow.FALLBACK,
        continuations=agent.max_continuations,
    )


def breaker_policy(config: Config) -> BreakerPolicy:
    """A circuit opens when one call's whole recovery, or as many failures of several, found no way."""
    agent = config.agent
    return policy_for(retries=agent.api_max_retries, base=agent.retry_base, cap=agent.retry_cap)


def limits(config: Config) -> Callable[[str], Limits]:
    """What is configured for a target (``provider/model``)."""

    def of(target: str) -> Limits:
        provider = config.providers.get(target.partition("/")[0])
        if provider is None:
            return Limits()
        rpm, at_once = provider.requests_per_minute, provider.max_concurrency
        # a server on this machine has no quota of its own to be found out; a stated one needs no finding out
        local = _is_local(getattr(provider, "base_url", ""))
        unproven = at_once if local or rpm > 0 else UNPROVEN_CALLS
        return Limits(at_once, rpm, provider.tokens_per_minute, unproven, learns=not local)

    return of


def reconnect_policy(config: Config) -> ReconnectPolicy:
    """``gateway.reconnect``."""
    r = config.gateway.reconnect
    return ReconnectPolicy(r.base, r.cap, r.max_attempts, r.park_probe)


def sweep_policy(config: Config) -> SweepPolicy:
    """``gateway.delivery``."""
    d = config.gateway.delivery
    return SweepPolicy(d.max_retries, d.base_delay, Uncertain(d.uncertain.value))


def view_settings(config: Config) -> ViewSettings:
    """``streaming``."""
    s = config.streaming
    return ViewSettings(s.enabled, s.first_after, s.min_interval)


def health_settings(config: Config) -> HealthSettings:
    """Bounds of readiness."""
    return HealthSettings(config.gateway.ready_max_age, config.gateway.disk_floor, config.gateway.stall_after)


def pace(platforms: Mapping[str, PlatformConfig]) -> dict[str, tuple[float, float]]:
    """Fixed rates where one is configured: seconds between two sends to a chat, sends a second."""
    found: dict[str, tuple[float, float]] = {}
    for name, platform in platforms.items():
        if isinstance(platform, TelegramConfig):
            found[name] = (platform.pace.per_chat_interval, platform.pace.global_per_second)
    return found


def file_access(config: Config, home: Path) -> FileAccess:
    """What the file tools may read: the configured roots, never the gateway's own home."""
    roots = tuple(Path(r).expanduser().resolve() for r in config.tools.roots) or (home.resolve() / "work",)
    return FileAccess(
        roots, (home.resolve(),), config.tools.max_read_bytes, config.tools.max_search_files
    )


def bind_of(config: Config) -> tuple[str, int]:
    """Host and port of ``gateway.bind``; the brackets of an IPv6 address are not part of it."""
    host, _, port = config.gateway.bind.rpartition(":")
    return host.strip("[]"), int(port)


def page(config: Config) -> tuple[WebSettings, float, frozenset[str]]:
    """The page's limits, how long a browser stays signed in, and the host names that are ours."""
    web = config.platforms["web"]
    assert isinstance(web, WebConfig)
    limits = WebSettings(
        web.enabled, web.max_message_bytes, web.max_streams, web.heartbeat, web.max_upload_bytes
    )
    return limits, web.cookie_age, frozenset({*config.gateway.allowed_hosts, bind_of(config)[0]})


def zone(config: Config) -> tzinfo:
    """``timezone``, else the system's."""
    if config.timezone:
        return ZoneInfo(config.timezone)
    return datetime.now(UTC).astimezone().tzinfo or UTC


def guardrails(config: Config) -> GuardSettings:
    """``tool_loop_guardrails``."""
    g = config.tool_loop_guardrails
    warn, block = (
        Counts(c.exact_failure, c.same_tool_failure, c.idempotent_no_progress)
        for c in (g.warn_after, g.hard_stop_after)
    )
    return GuardSettings(g.warnings_enabled, g.hard_stop_enabled, warn, block, g.halt_after_blocks)


def _is_local(base_url: str) -> bool:
    """Whether a provider's server runs on this machine."""
    return urlsplit(base_url).hostname in ("localhost", "127.0.0.1", "::1")


def dispatch_settings(config: Config, ready_at: float = 0.0) -> DispatchSettings:
    """What triage obeys. ``ready_at``: when this process became ready, in unix seconds."""
    agent = config.agent
    return DispatchSettings(
        max_age=config.gateway.max_age, ready_at=ready_at, busy_mode=agent.busy_mode, queue_limit=agent.queue_limit,
        queue_notice_after=agent.queue_notice_after,
    )  # fmt: skip


def home_channels(config: Config) -> dict[str, str]:
    """The chat of each enabled platform that gets notices, where one is configured."""
    return {
        name: str(platform.home_channel)
        for name, platform in config.platforms.items()
        if platform.enabled and isinstance(platform, ChatPlatformConfig) and platform.home_channel
    }


def pairing_policy(config: Config) -> PairingPolicy:
    """How codes are offered."""
    chosen = config.gateway.pairing
    return PairingPolicy(chosen.valid_for, chosen.every, chosen.pending)


def reset_policy(config: Config) -> ResetPolicy:
    """When conversations start afresh by themselves."""
    chosen = config.session_reset
    return ResetPolicy(chosen.mode, chosen.at_hour, chosen.idle_minutes, zone(config))
