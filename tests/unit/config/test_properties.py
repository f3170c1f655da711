"""Whatever stands in the file: a configuration or all its problems, and never a secret in a sentence."""

from __future__ import annotations

from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st

from hermes.config.errors import ConfigError
from hermes.config.known import KNOWN
from hermes.config.load import Loaded
from hermes.config.nearest import distance, nearest
from tests.unit.config.loading import load_text

EXAMPLE = (Path(__file__).parents[3] / "config.example.yaml").read_text()
CORE = "Zq7Zq7Zq7Zq7Zq7Zq7Zq7Zq7"
"""In every secret of these tests; no sentence may hold it."""

SECRETS = f"""
providers:
  main:
    kind: openai
    api_key: sk-{CORE}
  pool:
    kind: openai
    api_keys: [sk-{CORE}, "${{KEY}}"]
  renewed:
    kind: anthropic
    credential: {{kind: oauth_refresh, refresh_token: {CORE}, client_secret: "{CORE}"}}
platforms:
  telegram:
    enabled: true
    token: 424242:{CORE}
    webhook: {{url: https://example.org, secret: {CORE}}}
  slack: {{bot_token: xoxb-{CORE}, app_token: "xapp-{CORE}", signing_secret: {CORE}}}
  discord: {{enabled: true, token: "${{KEY}}"}}
mcp_servers:
  files: {{command: x, env: {{TOKEN: {CORE}}}, headers: {{Authorization: "Bearer {CORE}"}}}}
gateway: {{api_key: "{CORE}"}}
timezone: "${{KEY:-UTC}}"
agent: {{busy_mode: "${{KEY}}"}}
"""
ENVIRON = {"KEY": CORE, "HERMES_MAX_ITERATIONS": CORE, "HERMES_BIND": CORE, "ANTHROPIC_BASE_URL": CORE}

SLIPS = (
    ": §:§- §\n§\n  §  §{§}§[§]§,§\"§'§${§}§${KEY}§#§&a §*a§!t §|\n§>§%§@§`§\t§\\§"
    "<<: §---\n§...\n§? §~§off§12:30§\0§\ufeff"
    "§é§😀§enabled§kind§token§api_key§agent§platforms§providers§null§1e999§_file§99999999999999999999999999999999999"
)
PIECES = st.sampled_from(SLIPS.split("§"))
"""What YAML, variables and people's slips are made of."""


@st.composite
def damaged(draw: st.DrawFn, text: str) -> str:
    """``text`` after one to six slips: a piece put in, or a stretch cut out."""
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, len(text)))
        cut = draw(st.integers(0, 12))
        text = text[:at] + draw(st.one_of(PIECES, st.just(""))) + text[at + cut :]
    return text


def outcome(content: str | bytes, home: Path, environ: dict[str, str]) -> Loaded | ConfigError:
    """Anything else that is raised fails the test."""
    raw = content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")
    try:
        return load_text(raw, home, environ)
    except ConfigError as error:
        return error


def explained(result: Loaded | ConfigError) -> bool:
    """True for a configuration, or for problems that all say what was found."""
    return isinstance(result, Loaded) or (
        len(result.problems) > 0 and all(one.found for one in result.problems)
    )


@given(
    content=st.one_of(
        st.binary(max_size=300), st.text(max_size=300), st.lists(PIECES, max_size=40).map("".join)
    )
)
@example(content=b"\x00")
@example(content="a: &a [*a]")
@example(content="? [a]\n: b")
@example(content="[" * 5000)
@example(content="{" * 5000)
@example(content="- " * 5000)
@example(content="? " * 5000)
@example(content="a: " + "9" * 10_000)
@example(content="platforms: 1\nproviders: x\nmodel: []\nmcp_servers: [1]")
@example(content="providers: {a: {kind: [1]}, b: {kind: {}}, c: {kind: 1}}")
@example(content="platforms: {telegram: [1], web: {a: b}, 5: {}}")
def test_any_text_or_bytes_give_a_configuration_or_problems(content: str | bytes, tmp_path: Path) -> None:
    assert explained(outcome(content, tmp_path, {}))


@given(text=damaged(EXAMPLE))
def test_a_damaged_example_gives_a_configuration_or_problems(text: str, tmp_path: Path) -> None:
    assert explained(outcome(text, tmp_path, {"KEY": "x"}))


@given(text=damaged(SECRETS))
@example(text=SECRETS)
@example(text=SECRETS.replace("api_key:", "api_key"))
@example(text=SECRETS.replace("token: ", "token:"))
@example(text=SECRETS.replace("token:", "tokn:"))
@example(text=SECRETS.replace("kind: openai\n", f"kind: {CORE}\n"))
@example(text=SECRETS.replace("main:", f"{CORE}:"))
@example(text=SECRETS.replace("api_key: ", "api_key_file: "))
def test_no_secret_is_ever_in_a_sentence(text: str, tmp_path: Path) -> None:
    result = outcome(text, tmp_path, ENVIRON)
    shown = (
        result.render()
        if isinstance(result, ConfigError)
        else f"{result.notices} {result.sources} {result.config!r}"
    )
    assert CORE not in shown


@given(values=st.dictionaries(st.sampled_from(sorted(KNOWN)), st.text(max_size=40)))
def test_any_environment_gives_a_configuration_or_problems(values: dict[str, str], tmp_path: Path) -> None:
    assert explained(outcome("agent: {}", tmp_path, values))


@given(word=st.text("abcde_", min_size=4, max_size=9), at=st.integers(0, 8), letter=st.sampled_from("xyz"))
def test_one_wrong_letter_is_always_understood(word: str, at: int, letter: str) -> None:
    wrong = word[:at] + letter + word[at + 1 :]
    assert nearest(wrong, [word, "quite_another"]) == word


@given(left=st.text("abc", max_size=6), right=st.text("abc", max_size=6))
def test_the_distance_of_words_is_the_same_from_both_sides(left: str, right: str) -> None:
    assert distance(left, right, 9) == distance(right, left, 9)
    assert (distance(left, right, 9) == 0) == (left == right)
    assert distance(left, right, 2) == min(distance(left, right, 9), 3)


def test_two_letters_are_the_limit() -> None:
    known = ["max_turns", "queue_limit"]
    assert nearest("max_turn", known) == "max_turns"
    assert nearest("mxa_turns", known) == "max_turns"
    assert nearest("MAX-TURNS", known) == "max_turns"
    assert nearest("max_tu", known) is None
    assert nearest("", known) is None
    assert nearest("ab", ["xy"]) is None
