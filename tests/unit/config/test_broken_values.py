"""Keys and values that are refused: each with place, finding, what is allowed, and a cure."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.config.loading import TOKEN, Broken, lacking

TELEGRAM = f'platforms: {{telegram: {{enabled: true, token: "{TOKEN}"'
MAIN = "providers:\n  main: {kind: openai, base_url: http://127.0.0.1:1/v1}\n"

BROKEN = [
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
]


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case.name)
def test_each_broken_file_is_refused_with_its_line_path_and_sentence(case: Broken, tmp_path: Path) -> None:
    assert lacking(case, tmp_path) == []
