"""docs/configuration.md lists every key with its true default and what a change of it needs."""

from __future__ import annotations

import re
from pathlib import Path

from hermes.config.catalogue import keys
from hermes.config.known import DEFAULT_MODELS, KNOWN
from tests.unit.config.loading import PLATFORMS, PROVIDERS

PAGE = (Path(__file__).parents[3] / "docs" / "configuration.md").read_text()
ROWS = {
    name: (default.strip("`"), reload)
    for name, default, reload in re.findall(
        r"^\| `(\S+)` \| .* \| (\S*|the kind's own server) \| (\w+) \|$", PAGE, re.M
    )
}
KINDS = {"kind", "base_url"}
"""Keys whose default differs from kind to kind."""


def test_the_page_lists_every_key_and_no_other() -> None:
    assert set(ROWS) == {key.name for key in keys(PLATFORMS, PROVIDERS) if not key.section}


def test_the_page_states_defaults_and_reload_classes() -> None:
    wrong = [
        key.name
        for key in keys(PLATFORMS, PROVIDERS)
        if not key.section and key.path[-1] not in KINDS and ROWS[key.name] != (key.default, key.reload.value)
    ]
    assert wrong == []


def test_the_page_names_every_known_variable_and_every_default_model() -> None:
    named = set(re.findall(r"[A-Z]+(?:_[A-Z]+)+", PAGE))
    families = {name for name in KNOWN if name.endswith(("_ALLOW_ALL_USERS", "_HOME_CHANNEL"))}
    assert KNOWN - families <= named
    assert all(f"`{model}` for {name}" in PAGE for name, model in DEFAULT_MODELS.items())
