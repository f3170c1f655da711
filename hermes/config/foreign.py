"""Whose configuration is this? Other projects use the same names for their files (R34)."""

from __future__ import annotations

from collections.abc import Mapping

from hermes.config.model import Config

_HERMES_AGENT = frozenset(
    [
        "_config_version",
        "auxiliary",
        "browser",
        "bedrock",
        "checkpoints",
        "code_execution",
        "command_allowlist",
        "cron",
        "curator",
        "custom_providers",
        "delegation",
        "display",
        "fallback_model",
        "file_read_max_chars",
        "honcho",
        "hooks",
        "human_delay",
        "kanban",
        "known_plugin_toolsets",
        "lsp",
        "memory",
        "model_catalog",
        "network",
        "onboarding",
        "personalities",
        "platform_toolsets",
        "plugins",
        "prefill_messages_file",
        "privacy",
        "quick_commands",
        "security",
        "sessions",
        "skills",
        "skin",
        "smart_model_routing",
        "stt",
        "toolsets",
        "tts",
        "updates",
        "voice",
        "whatsapp",
    ]
)
"""Keys at the top of hermes-agent's config.yaml that ours has not."""

_AGENTS_AND_CHANNELS = frozenset({"agents", "channels"})
"""Keys at the top of both openclaw's and nanobot's file; ours has neither."""


def is_foreign_config(mapping: Mapping[str, object]) -> str | None:
    """The project whose configuration this is (a name that ``hermes import`` takes), or None.

    Judged by keys alone. One strange key is a slip of the pen and left to the schema; two that belong to the
    same project, or its version mark, are its file.
    """
    strange = set(mapping) - set(Config.model_fields)
    if strange >= _AGENTS_AND_CHANNELS:
        return "nanobot" if "providers" in mapping else "openclaw"
    model = mapping.get("model")
    signs = len(strange & _HERMES_AGENT) + (isinstance(model, Mapping) and "default" in model)
    return "hermes-agent" if "_config_version" in strange or signs >= 2 else None
