"""Sections that do not fit each other, and secrets that are none; and how problems are reported together."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.config.errors import ConfigError
from tests.unit.config.loading import TOKEN, Broken, lacking, load_text, problems_of

MAIN = "providers:\n  main: {kind: openai, base_url: http://127.0.0.1:1/v1}\n"

BROKEN = [
    # across keys
    Broken(
        "a first wait above the longest",
        "agent: {retry_base: 90}\n",
        1,
        "agent.retry_base",
        ("at most retry_cap",),
    ),
    Broken(
        "a summary as large as its cause",
        "compression: {target_ratio: 0.8}\n",
        1,
        "compression.target_ratio",
        ("less than threshold",),
    ),
    Broken(
        "an undefined provider",
        MAIN + "model: {provider: man, model: m}\n",
        3,
        "model.provider",
        ("no provider of this file", "did you mean main?"),
    ),
    Broken(
        "an undefined fallback",
        MAIN + "fallback_providers:\n  - {provider: other, model: m}\n",
        4,
        "fallback_providers[0].provider",
        ("no provider of this file",),
    ),
    Broken(
        "a fallback to the primary",
        MAIN + "model: {provider: main, model: m}\nfallback_providers: [{provider: main, model: m}]\n",
        4,
        "fallback_providers[0]",
        ("the same provider and model as the primary model",),
    ),
    Broken(
        "a fallback twice",
        MAIN + "model: {provider: main, model: m}\nfallback_providers:\n"
        "- {provider: main, model: n}\n- {provider: main, model: n}\n",
        6,
        "fallback_providers[1]",
        ("the same provider and model as fallback number 1",),
    ),
    Broken(
        "a fallback without a model",
        MAIN + "fallback_providers: [{provider: main}]\n",
        3,
        "fallback_providers[0].model",
        ("missing",),
    ),
    Broken(
        "a disabled provider",
        "providers:\n  a: {kind: rehearsal}\n  b: {kind: rehearsal, enabled: false}\nmodel: {provider: b}\n",
        4,
        "model.provider",
        ("a provider that is disabled",),
    ),
    Broken(
        "no enabled provider",
        "providers:\n  b: {kind: rehearsal, enabled: false}\n",
        1,
        "providers",
        ("enabled",),
    ),
    Broken(
        "an undefined summarising provider",
        MAIN + "compression: {provider: x, model: m}\n",
        3,
        "compression.provider",
        ("no provider of this file",),
    ),
    Broken(
        "an undefined transcribing provider",
        MAIN + "transcription: {provider: x, model: m}\n",
        3,
        "transcription.provider",
        ("no provider of this file",),
    ),
    Broken(
        "a transcribing provider that cannot listen",
        MAIN + "  other: {kind: rehearsal}\ntranscription: {provider: other, model: m}\n",
        4,
        "transcription.provider",
        ("kind rehearsal", "kind openai"),
    ),
    Broken(
        "a transcribing provider without a model",
        MAIN + "transcription: {provider: main}\n",
        3,
        "transcription.model",
        ("missing", "add model:"),
    ),
    Broken(
        "an MCP server without either",
        "mcp_servers:\n  files: {}\n",
        2,
        "mcp_servers.files",
        ("neither command nor url",),
    ),
    Broken(
        "two kinds of key",
        "providers:\n  main:\n    kind: openai\n    api_key: abcdef\n    api_keys: [ghijkl]\n",
        5,
        "providers.main.api_keys",
        ("api_key and api_keys are both given",),
    ),
    Broken(
        "no key for the official server",
        "providers:\n  main: {kind: openai}\n",
        2,
        "providers.main.api_key",
        ("missing", "wants one"),
    ),
    # secrets
    Broken(
        "an unset variable",
        'platforms:\n  telegram:\n    enabled: true\n    token: "${NOPE}"\n',
        4,
        "platforms.telegram.token",
        ("variable NOPE is not set", "set NOPE", "enabled: false"),
    ),
    Broken(
        "a variable without a name",
        'timezone: "${}"\n',
        1,
        "timezone",
        ("followed by no name", "${NAME:-default}"),
    ),
    Broken(
        "a placeholder",
        "platforms:\n  telegram: {enabled: true, token: YOUR_TOKEN_HERE}\n",
        2,
        "platforms.telegram.token",
        ("a placeholder instead of a secret",),
    ),
    Broken(
        "another placeholder",
        "providers:\n  main: {kind: openai, api_key: changeme}\n",
        2,
        "providers.main.api_key",
        ("a placeholder instead of a secret",),
    ),
    Broken(
        "a token of the wrong shape",
        "platforms:\n  telegram: {enabled: true, token: abcdef}\n",
        2,
        "platforms.telegram.token",
        ("no Telegram token", "BotFather"),
    ),
    Broken(
        "a name instead of an id",
        f'platforms:\n  telegram:\n    enabled: true\n    token: "{TOKEN}"\n    allowed_users: [1, "@me"]\n',
        5,
        "platforms.telegram.allowed_users[1]",
        ("nobody's id", "as Telegram numbers its users"),
    ),
    Broken(
        "a number instead of an id of Slack",
        "platforms:\n  slack: {enabled: true, bot_token: xoxb-1, app_token: xapp-1, allowed_users: [12]}\n",
        2,
        "platforms.slack.allowed_users[0]",
        ("nobody's id", "U012AB3CD"),
    ),
    Broken(
        "no token",
        "platforms:\n  telegram: {enabled: true}\n",
        2,
        "platforms.telegram.token",
        ("missing", "TELEGRAM_BOT_TOKEN"),
    ),
    Broken(
        "the wrong token of Slack",
        "platforms:\n  slack: {enabled: true, bot_token: xapp-1, app_token: xapp-1}\n",
        2,
        "platforms.slack.bot_token",
        ("does not start with xoxb-",),
    ),
    Broken(
        "no signing secret",
        "platforms:\n  slack: {enabled: true, mode: http, bot_token: xoxb-1}\n",
        2,
        "platforms.slack.signing_secret",
        ("missing", "mode: socket"),
    ),
    Broken(
        "a secret over two lines",
        'providers:\n  main: {kind: openai, api_key: "ab\\ncd"}\n',
        2,
        "providers.main.api_key",
        ("a blank or control character inside a secret",),
    ),
    Broken(
        "a secret file that is not there",
        "platforms:\n  telegram:\n    enabled: true\n    token_file: missing.txt\n",
        4,
        "platforms.telegram.token_file",
        ('missing.txt" cannot be used', "No such file"),
    ),
    Broken(
        "a secret twice",
        f"platforms:\n  telegram:\n    enabled: true\n    token: '{TOKEN}'\n    token_file: t.txt\n",
        5,
        "platforms.telegram.token_file",
        ("token is given as well",),
    ),
]


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case.name)
def test_each_broken_file_is_refused_with_its_line_path_and_sentence(case: Broken, tmp_path: Path) -> None:
    assert lacking(case, tmp_path) == []


def test_all_problems_come_at_once_in_the_order_of_lines(tmp_path: Path) -> None:
    text = "timezone: Nowhere\nagent: {max_turns: 0, colour: 1}\nplatforms: {telegrm: {}}\n"
    text += "providers: {a: {kind: b}}\n"
    problems = problems_of(text, tmp_path)
    assert [(p.line, p.path) for p in problems] == [
        (1, "timezone"),
        (2, "agent.max_turns"),
        (2, "agent.colour"),
        (3, "platforms.telegrm"),
        (4, "providers.a.kind"),
    ]


def test_one_cause_makes_one_problem(tmp_path: Path) -> None:
    text = "providers:\n  main: {kind: openai, api_key: 12:30}\nmodel: {provider: main, model: m}\n"
    assert [problem.path for problem in problems_of(text, tmp_path)] == ["providers.main.api_key"]


def test_the_whole_report_counts_its_problems_and_reads_like_a_compiler(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load_text("agent:\n  max_turn: 3\n", tmp_path)
    first, second, third = caught.value.render().splitlines()
    assert first == "1 problem in the configuration:"
    assert second.startswith(f"{tmp_path}/config.yaml:2: agent.max_turn: unknown key max_turn; allowed: ")
    assert third == "    write max_turns"
