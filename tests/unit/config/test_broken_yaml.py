"""Files that are no YAML, or not what their writer thinks: each has its own sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.config.loading import Broken, lacking

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
    assert lacking(case, tmp_path) == []
