"""A changed key is live, restarts its link, or waits for a restart of the process (R42)."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.config.reload import Changes, diff
from tests.unit.config.loading import TOKEN, load_text

BEFORE = f"""
providers:
  main: {{kind: openai, base_url: http://127.0.0.1:1/v1, api_key: first}}
platforms:
  telegram: {{enabled: true, token: "{TOKEN}", allowed_users: [1]}}
mcp_servers:
  files: {{command: x}}
"""


@pytest.mark.parametrize(
    ("old", "new", "changes"),
    [
        ("allowed_users: [1]", "allowed_users: [2]", Changes(live=("platforms.telegram.allowed_users",))),
        (
            "api_key: first",
            "api_key: second",
            Changes(link=("providers.main.api_key",), links=frozenset({("providers", "main")})),
        ),
        (
            "kind: openai",
            "kind: anthropic",
            Changes(
                live=("compression.model", "model.model"),
                link=("providers.main",),
                links=frozenset({("providers", "main")}),
            ),
        ),
        (
            "enabled: true",
            "enabled: false",
            Changes(link=("platforms.telegram.enabled",), links=frozenset({("platforms", "telegram")})),
        ),
        (
            "files: {command: x}",
            "other: {command: x}",
            Changes(
                link=("mcp_servers.files", "mcp_servers.other"),
                links=frozenset({("mcp_servers", "files"), ("mcp_servers", "other")}),
            ),
        ),
        ("mcp_servers", "gateway: {bind: 127.0.0.1:1}\nmcp_servers", Changes(process=("gateway.bind",))),
        ("mcp_servers", "agent: {max_turns: 3}\nmcp_servers", Changes(live=("agent.max_turns",))),
        (
            "mcp_servers",
            "gateway: {restart_intensity: {restarts: 1}}\nmcp_servers",
            Changes(process=("gateway.restart_intensity.restarts",)),
        ),
    ],
)
def test_each_change_is_reported_by_what_it_needs(
    old: str, new: str, changes: Changes, tmp_path: Path
) -> None:
    assert old in BEFORE
    before = load_text(BEFORE, tmp_path).config
    after = load_text(BEFORE.replace(old, new, 1), tmp_path).config
    assert diff(before, after) == changes
    assert bool(diff(before, after))


def test_the_same_file_read_twice_changes_nothing(tmp_path: Path) -> None:
    changes = diff(load_text(BEFORE, tmp_path).config, load_text(BEFORE, tmp_path).config)
    assert changes == Changes()
    assert not changes


def test_a_configuration_cannot_be_changed(tmp_path: Path) -> None:
    config = load_text(BEFORE, tmp_path).config
    with pytest.raises(ValueError, match="frozen"):
        config.agent.max_turns = 4  # type: ignore[misc]
