"""Every snippet of configuration in the pages passes ``hermes check``, and every key they name exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from hermes.app.catalogue import PLATFORM_MODELS, PROVIDER_MODELS
from hermes.app.loading import load
from hermes.config.catalogue import keys
from hermes.config.environment import Environment
from hermes.config.errors import ConfigError
from hermes.config.unbuilt import UNBUILT
from tests.docs.pages import ROOT, Block, blocks, inline_code, name_of, pages

SNIPPETS = [block for block in blocks("yaml") if "services" not in yaml.safe_load(block.text)]
OWN = [page for page in pages() if name_of(page) != "docs/configuration.md"]
KEYS = {key.name for key in keys(PLATFORM_MODELS, PROVIDER_MODELS)}
TOPS = {name.split(".")[0] for name in KEYS}

SECRETS = {
    "bot.token": "123456:abcdefghijklmnop",
    "webhook.secret": "abcdefghijklmnop",
    "slack-bot.token": "xoxb-1-abcdefghijklmnop",
    "slack-app.token": "xapp-1-abcdefghijklmnop",
    "slack-signing.secret": "abcdefghijklmnop",
}
"""Files that snippets name."""


def _load(text: str, folder: Path) -> None:
    for name, secret in SECRETS.items():
        (folder / name).write_text(f"{secret}\n")
        (folder / name).chmod(0o600)
    file = folder / "config.yaml"
    file.write_text(text)
    variables = {"HERMES_HOME": str(folder), "TELEGRAM_BOT_TOKEN": "123456:abcdefghijklmnop"}
    load(Environment.of(variables), file)


@pytest.mark.parametrize("snippet", SNIPPETS, ids=str)
def test_a_snippet_of_configuration_passes_check(snippet: Block, tmp_path: Path) -> None:
    try:
        _load(snippet.text, tmp_path)
    except ConfigError as error:
        pytest.fail(f"{snippet}: {error}")


def test_there_are_snippets_and_a_wrong_one_would_be_noticed(tmp_path: Path) -> None:
    assert SNIPPETS
    with pytest.raises(ConfigError):
        _load("gateway: {allowed_host: []}\n", tmp_path)


@pytest.mark.parametrize("page", OWN, ids=name_of)
def test_every_key_that_a_page_names_exists(page: Path) -> None:
    wrong = []
    for code in inline_code(page):
        name = code.partition(":")[0].partition("=")[0]
        if not re.fullmatch(r"[a-z_]+(?:\.(?:[a-z_]+|NAME|\*))+", name) or name.split(".")[0] not in TOPS:
            continue
        if name.endswith((".py", ".md", ".db")):
            continue
        stem = name.removesuffix(".*")
        if not any(key == stem or key.startswith(f"{stem}.") for key in KEYS):
            wrong.append(name)
    assert not wrong


def test_what_the_guarantees_call_without_effect_is_on_the_list_of_such_keys() -> None:
    """When retention is built, docs/guarantees.md has to say so."""
    text = (ROOT / "docs/guarantees.md").read_text(encoding="utf-8")
    assert ("Nothing is deleted yet" in text) == any(name.startswith("retention.") for name in UNBUILT)
