"""Broken configurations: each is refused with place, path, what was found, what is allowed and a cure."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from hermes.config.errors import ConfigError
from tests.unit.config.loading import TOKEN, load_text, problems_of


@dataclass(frozen=True)
class Broken:
    """A file, and the one problem it must have: its line, its path, and parts of its sentence."""

    name: str
    text: str | bytes
    line: int
    path: str
    says: tuple[str, ...]


TELEGRAM = f'platforms: {{telegram: {{enabled: true, token: "{TOKEN}"'
MAIN = "providers:\n  main: {kind: openai, base_url: http://127.0.0.1:1/v1}\n"

BROKEN = [
    # the file itself
    Broken("an empty file", "", 0, "", ("the file is empty", "delete the file to use defaults")),
    Broken("a file of blanks", " \n\n", 0, "", ("nothing but blanks",)),
    Broken("a file of comments", "# nothing\n", 0, "", ("nothing but blanks and comments",)),
    Broken("a list at the top", "- a\n- b\n", 1, "", ("a list at the top", "remove the leading `-`")),
    Broken("text at the top", "agent\n", 1, "", ("plain text at the top", "colon and a blank")),
    Broken(
        "bytes that are not UTF-8",
        b"timezone: UTC\nmodel: \xff\n",
        2,
        "",
        ("not UTF-8", "save the file as UTF-8"),
    ),
    Broken("UTF-16", "agent: {}\n".encode("utf-16"), 0, "", ("it is UTF-16",)),
    Broken("a NUL", "timezone: UTC\nagent: {}\n\0", 3, "", ("a NUL character",)),
    Broken("another control character", "timezone: U\x07TC\n", 1, "", ("a control character",)),
    Broken("a huge file", "a: 1\n" * 60_000, 0, "", ("larger than 262144 bytes",)),
    # YAML
    Broken("a tab", "agent:\n\tmax_turns: 4\n", 2, "", ("a tab is used to indent", "two blanks")),
    Broken("no blank after the colon", "agent:\n  max_turns:4\n  queue_limit: 3\n", 3, "", ("not YAML",)),
    Broken("an open quote", 'timezone: "UTC\n', 1, "", ("a quote that is opened here",)),
    Broken("an open brace", "agent: {max_turns: 4\n", 1, "", ("a { that is opened here",)),
    Broken("a bracket too many", "agent: {}}\n", 1, "", ("a bracket that closes nothing",)),
    Broken("a wrong indentation", "agent:\n  max_turns: 4\n queue_limit: 3\n", 3, "", ("fits no section",)),
    Broken("an IPv6 address in braces", "gateway: {bind: [::1]:8642}\n", 1, "", ("reads as a list",)),
    Broken("deep nesting", "a: " + "[" * 60 + "\n", 1, "a", ("nesting deeper than 32 levels",)),
    Broken("two documents", "agent: {}\n---\ngoals: {}\n", 2, "", ("a second YAML document", "one document")),
    Broken("a tag", "agent: !!python/object:os.system {}\n", 1, "agent", ("a YAML tag", "remove the tag")),
    Broken("a lost alias", "agent: *nobody\n", 1, "agent", ("whose anchor", "starts with *")),
    Broken("an alias of itself", "agent: &a {b: *a}\n", 1, "agent.b", ("whose anchor",)),
    Broken(
        "a file that unfolds",
        "".join(f"x{n}: &x{n} [" + ", ".join([f"*x{n - 1}" if n else "1"] * 12) + "]\n" for n in range(8)),
        4,
        "x3",
        ("once aliases are followed",),
    ),
    Broken(
        "a merge of text", "agent:\n  <<: word\n", 2, "agent", ("`<<` is given something that is no mapping",)
    ),
    Broken(
        "a duplicate key",
        "agent:\n  max_turns: 4\n  max_turns: 5\n",
        3,
        "agent.max_turns",
        ("twice", "in line 2"),
    ),
    Broken("a mapping as key", "agent: {{a: b}: c}\n", 1, "agent", ("where a key belongs",)),
    Broken(
        "a key read as true",
        "agent:\n  on: 4\n",
        2,
        "agent",
        ("reads the key here as true or false", "quotes"),
    ),
    Broken("a null section", "agent:\ngoals: {}\n", 1, "agent", ("found nothing (null)", "remove the line")),
    Broken("a null value", "agent: {max_turns: ~}\n", 1, "agent.max_turns", ("found nothing (null)",)),
    # YAML's traps
    Broken(
        "off for a word",
        "session_reset:\n  mode: off\n",
        2,
        "session_reset.mode",
        ("off without quotes, which YAML reads as false", "none | idle | daily | both"),
    ),
    Broken(
        "yes for a text",
        "timezone: yes\n",
        1,
        "timezone",
        ("yes without quotes, which YAML reads as true", "quotes"),
    ),
    Broken(
        "off for a time",
        "gateway: {max_age: off}\n",
        1,
        "gateway.max_age",
        ("reads as false", "30s, 5m, 24h"),
    ),
    Broken(
        "true for a number",
        "agent: {max_turns: true}\n",
        1,
        "agent.max_turns",
        ("found true", "a whole number"),
    ),
    Broken(
        "a time of day",
        "session_reset: {at_hour: 12:30}\n",
        1,
        "session_reset.at_hour",
        ("12:30 without quotes", "the number 750", "base 60"),
    ),
    Broken(
        "a variable in braces",
        "providers:\n  main: {kind: openai, api_key: ${KEY}}\n",
        2,
        "",
        ("${…} without quotes inside braces", 'write "${NAME}" in quotes'),
    ),
    Broken(
        "a variable in brackets",
        "platforms:\n  telegram:\n    allowed_users: [${ME}]\n",
        3,
        "",
        ("${…} without quotes inside brackets",),
    ),
    Broken("an IPv6 address", "gateway:\n  bind: [::1]:8642\n", 2, "", ("reads as a list", '"[::1]:8642"')),
    Broken("an IPv6 address alone", "gateway:\n  bind: [::1]\n", 2, "", ("reads as a list", '"[::1]:8642"')),
    # keys and names
    Broken(
        "an unknown section",
        "agnt: {}\n",
        1,
        "agnt",
        ("unknown key agnt", "did you mean agent?", "write agent"),
    ),
    Broken(
        "an unknown key",
        "agent:\n  max_turn: 3\n",
        2,
        "agent.max_turn",
        ("unknown key max_turn", "did you mean max_turns?"),
    ),
    Broken("a swapped letter", "gateway: {bnid: x}\n", 1, "gateway.bnid", ("did you mean bind?",)),
    Broken("a platform at the top", "telegram: {}\n", 1, "telegram", ("unknown key", "below `platforms:`")),
    Broken("a key outside its section", "max_turns: 4\n", 1, "max_turns", ("below `agent:` or `goals:`",)),
    Broken(
        "a name with a blank", "providers: {a b: {}}\n", 1, "providers.a b", ("a name that cannot be used",)
    ),
    Broken(
        "a name with a slash", "mcp_servers: {a/b: {}}\n", 1, "mcp_servers.a/b", ("letters, digits, and",)
    ),
    Broken(
        "a key like none", "agent: {colour: red}\n", 1, "agent.colour", ("unknown key colour", "max_turns")
    ),
    Broken(
        "an unknown platform",
        "platforms: {telegrm: {}}\n",
        1,
        "platforms.telegrm",
        ("unknown platform telegrm", "did you mean telegram?"),
    ),
    Broken(
        "an unknown kind",
        "providers:\n  main:\n    kind: opnai\n",
        3,
        "providers.main.kind",
        ('found "opnai"', "openai | anthropic | rehearsal", "did you mean openai?"),
    ),
    Broken(
        "no kind", "providers:\n  main: {}\n", 2, "providers.main.kind", ("missing", "openai | anthropic")
    ),
    Broken(
        "an unknown word",
        "agent: {busy_mode: quue}\n",
        1,
        "agent.busy_mode",
        ('"quue"', "did you mean queue?"),
    ),
    Broken(
        "an unknown key of a disabled platform",
        "platforms:\n  slack:\n    enabled: false\n    tokn: x\n",
        4,
        "platforms.slack.tokn",
        ("unknown key tokn",),
    ),
    Broken(
        "an unknown credential",
        "providers:\n  main:\n    kind: openai\n    credential: {kind: fil}\n",
        4,
        "providers.main.credential.kind",
        ("env | file | command | oauth_refresh", "did you mean file?"),
    ),
    Broken(
        "an unknown key of a credential",
        "providers:\n  main:\n    kind: openai\n    credential: {kind: env, nam: X}\n",
        4,
        "providers.main.credential.nam",
        ("unknown key nam", "did you mean name?"),
    ),
    Broken(
        "an unknown key of a model",
        MAIN.replace("}", ", models: {m: {context: 4}}}"),
        2,
        "providers.main.models.m.context",
        ("unknown key context",),
    ),
    # kinds of value
    Broken("a list for a section", "agent: [1]\n", 1, "agent", ("found a list", "a section")),
    Broken("text for a section", "gateway: here\n", 1, "gateway", ('found "here"', "a section")),
    Broken("a list for platforms", "platforms: []\n", 1, "platforms", ("found a list", "a section")),
    Broken(
        "a list for a provider", "providers: {main: []}\n", 1, "providers.main", ("found a list", "a section")
    ),
    Broken(
        "a section for a list",
        "fallback_providers: {}\n",
        1,
        "fallback_providers",
        ("found a section", "a list"),
    ),
    Broken(
        "text for a number",
        "agent: {max_turns: many}\n",
        1,
        "agent.max_turns",
        ('found "many"', "a whole number"),
    ),
    Broken(
        "a quoted number", 'agent: {max_turns: "4"}\n', 1, "agent.max_turns", ('found "4"', "a whole number")
    ),
    Broken("half a step", "agent: {max_turns: 1.5}\n", 1, "agent.max_turns", ("found 1.5", "a whole number")),
    Broken("a number for a text", "timezone: 5\n", 1, "timezone", ("found 5", "time zone database")),
    Broken(
        "text for a flag",
        "streaming: {enabled: maybe}\n",
        1,
        "streaming.enabled",
        ('"maybe"', "true or false"),
    ),
    Broken(
        "no duration", "gateway: {max_age: soon}\n", 1, "gateway.max_age", ('"soon"', "30s, 5m, 24h, 365d")
    ),
    Broken("no size", "gateway: {disk_floor: big}\n", 1, "gateway.disk_floor", ('"big"', "64KiB, 10MiB")),
    Broken(
        "an id with a blank",
        TELEGRAM + ", allowed_users: [1, 2 3]}}\n",
        1,
        "platforms.telegram.allowed_users[1]",
        ("an id as integer or text",),
    ),
    # ranges
    Broken(
        "negative retries",
        "agent: {api_max_retries: -1}\n",
        1,
        "agent.api_max_retries",
        ("found -1", "0-100"),
    ),
    Broken("a ratio of one", "compression: {threshold: 1}\n", 1, "compression.threshold", ("> 0 and < 1",)),
    Broken("the 25th hour", "session_reset: {at_hour: 24}\n", 1, "session_reset.at_hour", ("0-23",)),
    Broken("no steps", "agent: {max_turns: 0}\n", 1, "agent.max_turns", ("found 0", ">= 1")),
    Broken(
        "a negative time", "gateway: {drain_timeout: -1}\n", 1, "gateway.drain_timeout", ("found -1", ">= 0")
    ),
    Broken(
        "a window of no tokens",
        MAIN.replace("}", ", models: {m: {context_window: 0}}}"),
        2,
        "providers.main.models.m.context_window",
        ("found 0", "> 0"),
    ),
    Broken("no time zone", "timezone: Europe/Berln\n", 1, "timezone", ('"Europe/Berln"', "Europe/Berlin")),
    Broken("a port too high", "gateway: {bind: 127.0.0.1:65536}\n", 1, "gateway.bind", ("1-65535",)),
    Broken("port zero", "gateway: {bind: 127.0.0.1:0}\n", 1, "gateway.bind", ("1-65535",)),
    Broken("a port alone", "gateway: {bind: 8642}\n", 1, "gateway.bind", ("found 8642", "HOST:PORT")),
    Broken(
        "an address without scheme",
        "providers:\n  main: {kind: openai, base_url: localhost:80}\n",
        2,
        "providers.main.base_url",
        ('"localhost:80"', "http:// or https://"),
    ),
    Broken(
        "an address without host",
        "providers:\n  main: {kind: openai, base_url: http://}\n",
        2,
        "providers.main.base_url",
        ("http:// or https://, a host",),
    ),
    Broken(
        "a web address for a socket",
        "platforms: {discord: {gateway_url: https://x}}\n",
        1,
        "platforms.discord.gateway_url",
        ("ws:// or wss://",),
    ),
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
    # files of other projects
    Broken(
        "a file of hermes-agent",
        "_config_version: 9\nmodel: {default: x}\n",
        0,
        "",
        ("hermes import hermes-agent",),
    ),
    Broken(
        "a file of openclaw", "agents: {}\nchannels: {}\ngateway: {}\n", 0, "", ("hermes import openclaw",)
    ),
    Broken(
        "a file of nanobot", "agents: {}\nchannels: {}\nproviders: {}\n", 0, "", ("hermes import nanobot",)
    ),
]


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case.name)
def test_each_broken_file_is_refused_with_its_line_path_and_sentence(case: Broken, tmp_path: Path) -> None:
    problems = problems_of(case.text, tmp_path)
    assert [problem.path for problem in problems] == [case.path]
    (problem,) = problems
    assert (problem.file, problem.line) == (str(tmp_path / "config.yaml"), case.line)
    rendered = problem.render()
    assert [part for part in case.says if part not in rendered] == []
    assert problem.cure
    assert "\n" not in problem.cure


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
