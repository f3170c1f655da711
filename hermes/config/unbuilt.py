"""Keys that are checked but do nothing yet; whoever sets one is told so at start.

A key leaves this list with the change that reads it; a test compares the list with the code.
"""

from __future__ import annotations

from hermes.config.fields import Section
from hermes.config.model import Config
from hermes.config.shape import subsections

UNBUILT = frozenset(
    {
        "gateway.loop_lag",
        "approvals.mode",
        "gateway.ballast",
        "gateway.max_command_age",
        "gateway.max_skew",
        "gateway.restart_intensity.restarts",
        "mcp_servers.NAME.command",
        "mcp_servers.NAME.env",
        "mcp_servers.NAME.required",
        "retention.backups",
        "retention.spill",
        "retention.traces",
        "terminal.backend",
        "tools.max_write_bytes",
    }
)

_NAMED = (("providers",), ("mcp_servers",), ("providers", "NAME", "models"))


def without_effect(config: Config) -> tuple[str, ...]:
    """Keys that were set to something else than their default, and do nothing in this version."""
    found: set[str] = set()
    for path, section in subsections(config):
        if not isinstance(section, Section) or getattr(section, "enabled", True) is False:
            continue
        general: tuple[str, ...] = ()
        for step in path:
            general = (*general, "NAME" if general in _NAMED else str(step))
        for key in section.model_fields_set:
            name = ".".join((*general, key))
            default = type(section).model_fields[key].get_default(call_default_factory=True)
            if name in UNBUILT and getattr(section, key) != default:
                found.add(name)
    return tuple(sorted(found))
