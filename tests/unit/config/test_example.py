"""config.example.yaml tells the truth: it loads, has every key, states the defaults, and each key is read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hermes.config.catalogue import NAME, Key, keys
from hermes.config.errors import ConfigError
from hermes.config.model import Config
from hermes.config.reload import diff
from tests.unit.config.loading import PLATFORMS, PROVIDERS, TOKEN, load_file, load_text

EXAMPLE = Path(__file__).parents[3] / "config.example.yaml"
TEXT = EXAMPLE.read_text()
WRITTEN: dict[str, Any] = yaml.safe_load(TEXT)

Path_ = tuple[str | int, ...]

NAMED = {("providers",), ("mcp_servers",), ("providers", "main", "models"), ("providers", NAME, "models")}
"""Mappings whose keys are names of the owner's own."""
FREE = {"env", "headers"}
"""Mappings from any text to any text; what is below them is one value."""

SAMPLES = (
    "providers",
    "mcp_servers",
    "model",
    "fallback_providers",
    "compression.model",
    "compression.provider",
)
"""Where the example holds a sample instead of a default."""

ENVIRON = {
    "TELEGRAM_BOT_TOKEN": TOKEN,
    "TELEGRAM_WEBHOOK_SECRET": "0123456789abcdef",
    "DISCORD_BOT_TOKEN": "abcdef",
    "SLACK_BOT_TOKEN": "xoxb-1",
    "SLACK_APP_TOKEN": "xapp-1",
    "FIRST_KEY": "first",
    "SECOND_KEY": "second",
    "OTHER_API_KEY": "other",
    "OAUTH_REFRESH_TOKEN": "refresh",
}


def catalogue() -> list[Key]:
    return list(keys(PLATFORMS, PROVIDERS))


def leaves(value: object, path: Path_ = ()) -> Iterator[tuple[Path_, object]]:
    """Each value of the example with its path."""
    if isinstance(value, dict) and value and path[-1:] not in {(name,) for name in FREE}:
        for name, inner in value.items():
            yield from leaves(inner, (*path, name))
    elif path[:1] == ("fallback_providers",) and isinstance(value, list):
        for at, inner in enumerate(value):
            yield from leaves(inner, (*path, at))
    else:
        yield path, value


def general(path: Path_) -> str:
    """The path as the catalogue writes it: names become NAME, numbers of items vanish."""
    steps: list[str] = []
    for step in path:
        if isinstance(step, str):
            steps.append(NAME if tuple(steps) in NAMED else step)
    return ".".join(steps)


def test_the_example_passes_the_check_with_no_variable_set(tmp_path: Path) -> None:
    assert load_text(TEXT, tmp_path).config.model.model == "some-model"


def test_every_key_is_in_the_example_and_nothing_else() -> None:
    written = {general(path) for path, _ in leaves(WRITTEN)}
    known = {key.name for key in catalogue() if not key.section}
    assert written - known == {"mcp_servers.NAME.env", "mcp_servers.NAME.headers"} & written - known
    assert known - written == set()


def test_every_key_has_a_description_and_the_example_a_comment_for_each() -> None:
    assert [key.name for key in catalogue() if len(key.description) < 10 and key.name != "goals"] == []
    bare = [line for line in TEXT.splitlines() if line and "#" not in line]
    assert all(line.startswith("  ") for line in bare)
    commented = {
        line.strip().removeprefix("- ").split(":")[0] for line in TEXT.splitlines() if "  # " in line
    }
    lacking = {key.path[-1] for key in catalogue() if key.path[-1] not in commented}
    assert lacking <= {"api_keys"} | lacking & commented


def test_the_example_states_the_defaults(tmp_path: Path) -> None:
    defaults = load_file(None, tmp_path).config
    changes = diff(defaults, load_text(TEXT, tmp_path).config)
    different = [*changes.live, *changes.link, *changes.process]
    assert [path for path in different if not path.startswith(SAMPLES)] == []


def others(path: Path_, value: object) -> list[object]:
    """Values to put in the place of ``value``, likeliest first."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int | float):
        return [value + 1, value / 2, 0.3, value - 1]
    if isinstance(value, list):
        return [["other"]]
    if isinstance(value, dict):
        return [{"OTHER": "other"}]
    return [
        "7s",
        "9KiB",
        "main" if path[-1] == "provider" else "secret.txt",
        "practice",
        "http://other.example.org",
        "ws://other.example.org",
        "127.0.0.1:1",
        "UTC",
        "round_robin",
        "steer",
        "fallback",
        "hold",
        "idle",
        "deny",
        "none",
        "debug",
        "http",
        "anthropic",
    ]


TOGETHER: dict[Path_, tuple[Path_, object]] = {
    ("compression", "provider"): (("compression", "model"), "m"),
    ("transcription", "provider"): (("transcription", "model"), "m"),
    ("providers", "main", "enabled"): (("model", "provider"), "practice"),
}
"""Keys whose change needs another one to stand differently before and after."""


def with_value(path: Path_, value: object) -> dict[str, Any]:
    """The example's providers and the one section of ``path``, in which ``value`` stands."""
    whole = json.loads(json.dumps(WRITTEN))
    for where, put in [(path, value), *([TOGETHER[path]] if path in TOGETHER else [])]:
        here: Any = whole
        for step in where[:-1]:
            here = here[step]
        here[where[-1]] = put
    kept = {"providers", "model", path[0]}
    return {name: section for name, section in whole.items() if name in kept}


def load(values: dict[str, Any], home: Path) -> Config | None:
    try:
        return load_text(json.dumps(values), home, ENVIRON).config
    except ConfigError:
        return None


CASES = [
    pytest.param(path, value, id=general(path))
    for path, value in leaves(WRITTEN)
    if path[-1] != "kind" or path[:2] == ("providers", "main")
]


@pytest.mark.parametrize(("path", "value"), CASES)
def test_a_changed_value_of_each_key_changes_the_configuration(
    path: Path_, value: object, tmp_path: Path
) -> None:
    (tmp_path / "secret.txt").write_text("a-secret-of-a-file\n")
    (tmp_path / "main.key").write_text("another-secret\n")
    before = load(with_value(path, value), tmp_path)
    assert before is not None
    if path == ("providers", "main", "kind"):
        assert load(with_value(path, "anthropic"), tmp_path) != before
        return
    loaded = (load(with_value(path, other), tmp_path) for other in others(path, value))
    after = next(one for one in loaded if one is not None and one != before)
    assert after != before


def test_the_credential_kinds_of_the_example_are_all_there_are() -> None:
    written = {one["credential"]["kind"] for one in WRITTEN["providers"].values() if "credential" in one}
    assert written == {"env", "file", "command", "oauth_refresh"}
