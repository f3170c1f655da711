"""Whose ``config.yaml`` is this? Other projects use the same names (R34)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

_OWN = frozenset({
    "timezone", "model", "providers", "fallback_providers", "agent", "goals", "compression", "tool_loop_guardrails",
    "gateway", "streaming", "session_reset", "retention", "platforms", "mcp_servers", "tools", "terminal",
    "approvals", "transcription", "output",
})

_SIGNS: Mapping[str, frozenset[str]] = MappingProxyType({
    "hermes-agent": frozenset({
        "_config_version", "toolsets", "auxiliary", "delegation", "display", "checkpoints", "smart_model_routing",
        "custom_providers", "fallback_model", "command_allowlist", "quick_commands", "personalities", "honcho",
        "model_catalog", "platform_toolsets", "skills", "memory", "tts", "stt", "voice", "browser", "security",
        "privacy", "prefill_messages_file", "human_delay", "cron", "credential_pool_strategies", "onboarding",
        "code_execution", "dashboard", "context", "bedrock", "updates", "plugins", "hooks", "known_plugin_toolsets",
        "file_read_max_chars", "skin", "kanban", "curator", "lsp", "web", "sessions", "network", "whatsapp",
    }),
    "openclaw": frozenset({
        "agents", "channels", "bindings", "meta", "wizard", "auth", "plugins", "messages", "commands", "hooks",
        "session", "models", "env", "logging", "broadcast", "audio", "talk", "canvasHost", "cron", "discovery",
        "nodeHost", "browser", "ui", "skills", "$include", "secrets", "memory", "acp",
    }),
    "nanobot": frozenset({
        "agents", "channels", "tools", "modelPresets", "api", "heartbeat", "providers", "gateway", "transcription",
    }),
})
"""Keys at the top of those projects' files. Two of them that are not ours name the owner."""


def is_foreign_config(mapping: Mapping[str, object]) -> str | None:
    """The project whose file this is, or None. Judged by keys only, and only when two do not fit ours."""
    strange = set(mapping) - _OWN
    if "_config_version" in strange:
        return "hermes-agent"
    if len(strange) < 2 and not _foreign_inside(mapping):
        return None
    scored = [(len(strange & signs), name) for name, signs in _SIGNS.items()]
    best = max(scored, key=lambda pair: pair[0])
    if best[0] >= 2:
        if {"agents", "channels"} <= strange:
            return "nanobot" if (_only(strange, _SIGNS["nanobot"]) and "mcpServers" in str_keys(mapping, "tools")) or (
                _only(strange, _SIGNS["nanobot"]) and "meta" not in strange and "defaults" in str_keys(mapping, "agents")
                and _camel(mapping)) else "openclaw"
        return best[1]
    return None


def _foreign_inside(mapping: Mapping[str, object]) -> bool:
    return bool({"agents", "channels"} & set(mapping))


def _only(strange: Iterable[str], signs: frozenset[str]) -> bool:
    return set(strange) <= signs


def str_keys(mapping: Mapping[str, object], name: str) -> set[str]:
    """Keys of a section, or nothing."""
    inner = mapping.get(name)
    return {str(key) for key in inner} if isinstance(inner, Mapping) else set()


def _camel(mapping: Mapping[str, object]) -> bool:
    """nanobot keeps its providers at the top."""
    return "providers" in mapping
