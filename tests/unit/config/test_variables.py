"""Variables and secret files inside a configuration, and the variables that work without one."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.config.adapters import ChatPlatformConfig, KeyedProviderConfig
from hermes.config.errors import ConfigError, Problem
from hermes.config.known import DEFAULT_MODELS
from hermes.config.model import Config
from hermes.platforms.slack.config import SlackConfig
from hermes.platforms.telegram.config import TelegramConfig
from hermes.providers.openai.config import OpenaiConfig
from tests.unit.config.loading import TOKEN, load_file, load_text, problems_of


def telegram(config: Config) -> TelegramConfig:
    section = config.platforms["telegram"]
    assert isinstance(section, TelegramConfig)
    return section


def provider(config: Config, name: str) -> OpenaiConfig:
    section = config.providers[name]
    assert isinstance(section, OpenaiConfig)
    return section


def problems_of_environment(environ: dict[str, str], home: Path) -> tuple[Problem, ...]:
    try:
        load_file(None, home, environ)
    except ConfigError as error:
        return error.problems
    return ()


# ---- inside the file ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "environ", "read"),
    [
        ('"${ZONE}"', {"ZONE": "UTC"}, "UTC"),
        ("'${ZONE}'", {"ZONE": "UTC"}, "UTC"),
        ("${ZONE}", {"ZONE": "UTC"}, "UTC"),
        ("|-\n  ${ZONE}", {"ZONE": "UTC"}, "UTC"),
        (">-\n  ${ZONE}", {"ZONE": "UTC"}, "UTC"),
        ('"${ZONE:-UTC}"', {}, "UTC"),
        ('"${ZONE:-UTC}"', {"ZONE": ""}, "UTC"),
        ('"${ZONE:-UTC}"', {"ZONE": "Europe/Berlin"}, "Europe/Berlin"),
        ('"${ZONE:-}"', {}, ""),
        ('"${ZONE}"', {"ZONE": ""}, ""),
        ('"${A}/${B}"', {"A": "Europe", "B": "Berlin"}, "Europe/Berlin"),
    ],
)
def test_a_variable_stands_in_any_scalar(
    written: str, environ: dict[str, str], read: str, tmp_path: Path
) -> None:
    assert load_text(f"timezone: {written}\n", tmp_path, environ).config.timezone == read


def test_a_value_of_a_variable_is_not_expanded_again(tmp_path: Path) -> None:
    text = 'providers: {main: {kind: openai, api_key: "${KEY}"}}\n'
    config = load_text(text, tmp_path, {"KEY": "${OTHER}"}).config
    assert provider(config, "main").api_key.get_secret_value() == "${OTHER}"


def test_two_dollars_stand_for_the_characters_themselves(tmp_path: Path) -> None:
    text = 'providers: {main: {kind: openai, api_key: "$${KEY}"}}\n'
    assert provider(load_text(text, tmp_path).config, "main").api_key.get_secret_value() == "${KEY}"


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("agent.max_turns", "7", 7),
        ("agent.retry_base", "30s", 30.0),
        ("compression.threshold", "0.5", 0.5),
        ("streaming.enabled", "off", False),
        ("streaming.enabled", "TRUE", True),
        ("gateway.disk_floor", "1MiB", 2**20),
        ("agent.busy_mode", "steer", "steer"),
    ],
)
def test_a_variable_fills_a_key_of_any_kind(key: str, text: str, value: object, tmp_path: Path) -> None:
    section, name = key.split(".")
    config = load_text(f'{section}: {{{name}: "${{X}}"}}\n', tmp_path, {"X": text}).config
    assert getattr(getattr(config, section), name) == value


def test_a_list_may_come_from_one_variable_with_commas(tmp_path: Path) -> None:
    text = 'platforms: {telegram: {allowed_users: "${USERS}"}}\n'
    assert telegram(load_text(text, tmp_path, {"USERS": "1, 2,"}).config).allowed_users == ("1", "2")


def test_an_unset_variable_in_a_disabled_section_is_no_problem(tmp_path: Path) -> None:
    text = 'platforms: {telegram: {enabled: false, token: "${X}", pace: {global_per_second: "${X}"}}}\n'
    assert telegram(load_text(text, tmp_path).config).token.get_secret_value() == ""


def test_a_section_may_be_switched_by_a_variable(tmp_path: Path) -> None:
    text = 'platforms:\n  telegram:\n    enabled: "${ON:-false}"\n    token: "${NOPE}"\n'
    assert telegram(load_text(text, tmp_path).config).enabled is False
    assert [p.path for p in problems_of(text, tmp_path, {"ON": "true"})] == ["platforms.telegram.token"]


def test_ids_may_be_integers_or_texts(tmp_path: Path) -> None:
    text = 'platforms: {telegram: {allowed_users: [12, "13", U07AB], home_channel: -100123}}\n'
    section = telegram(load_text(text, tmp_path).config)
    assert section.allowed_users == ("12", "13", "U07AB")
    assert section.home_channel == "-100123"


def test_a_secret_file_lies_beside_the_configuration_and_may_end_with_a_line_break(tmp_path: Path) -> None:
    (tmp_path / "token.txt").write_text(f"{TOKEN}\n")
    text = "platforms: {telegram: {enabled: true, token_file: token.txt}}\n"
    assert telegram(load_text(text, tmp_path).config).token.get_secret_value() == TOKEN


def test_secrets_that_others_can_read_are_announced(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("abc")
    (tmp_path / "key").chmod(0o640)
    text = "providers: {main: {kind: openai, api_key_file: key}}\n"
    notice = "providers.main.api_key_file: others can read that file: chmod 600"
    assert notice in load_text(text, tmp_path).notices
    (tmp_path / "key").chmod(0o600)
    assert notice not in load_text(text, tmp_path).notices


def test_a_configuration_with_secrets_that_others_can_read_is_announced(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    for text, mode, announced in [
        ("providers: {main: {kind: openai, api_key: abc}}\n", 0o644, True),
        ("providers: {main: {kind: openai, api_key: abc}}\n", 0o600, False),
        ('providers: {main: {kind: openai, api_key: "${KEY}"}}\n', 0o644, False),
    ]:
        file.write_text(text)
        file.chmod(mode)
        notices = load_file(None, tmp_path, {"KEY": "abc"}).notices
        assert (f"{file} holds secrets and others can read it: chmod 600" in notices) is announced


def test_an_unset_variable_is_compared_with_those_that_are_set(tmp_path: Path) -> None:
    (problem,) = problems_of('timezone: "${ZONA}"\n', tmp_path, {"ZONE": "UTC"})
    assert problem.found == "variable ZONA is not set (did you mean ZONE?)"


def test_a_secret_file_of_a_disabled_section_is_not_read(tmp_path: Path) -> None:
    text = "platforms: {telegram: {enabled: false, token_file: missing.txt}}\n"
    assert telegram(load_text(text, tmp_path).config).enabled is False


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "it is empty"),
        (b"a\nb\n", "more than one line"),
        (b"\xff", "not UTF-8"),
        (b"x" * 70_000, "larger than 65536 bytes"),
    ],
)
def test_a_secret_file_that_holds_no_secret_is_refused(content: bytes, says: str, tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(content)
    (problem,) = problems_of("providers: {main: {kind: openai, api_key_file: key}}\n", tmp_path)
    assert problem.path == "providers.main.api_key_file"
    assert says in problem.found


def test_a_placeholder_in_a_secret_file_is_refused_at_the_line_of_the_file_key(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("changeme")
    (problem,) = problems_of("providers:\n  main:\n    kind: openai\n    api_key_file: key\n", tmp_path)
    assert (problem.line, problem.path) == (4, "providers.main.api_key")


def test_a_credential_names_a_variable_that_is_set(tmp_path: Path) -> None:
    text = "providers:\n  main: {kind: openai, credential: {kind: env, name: KEY}}\n"
    assert problems_of(text, tmp_path, {"KEY": "abc"}) == ()
    (problem,) = problems_of(text, tmp_path)
    assert problem.path == "providers.main.credential.name"
    assert "variable KEY is not set" in problem.found


def test_a_credential_file_is_named_by_its_full_path_afterwards(tmp_path: Path) -> None:
    text = "providers:\n  main: {kind: openai, credential: {kind: file, path: key}}\n"
    (problem,) = problems_of(text, tmp_path)
    assert problem.path == "providers.main.credential.path"
    (tmp_path / "key").write_text("abc")
    section = load_text(text, tmp_path).config.providers["main"]
    assert isinstance(section, KeyedProviderConfig)
    assert getattr(section.credential, "path", None) == str(tmp_path / "key")


# ---- without a file --------------------------------------------------------------------------------------


def test_with_nothing_set_the_rehearsal_provider_answers_on_the_page(tmp_path: Path) -> None:
    loaded = load_file(None, tmp_path)
    config = loaded.config
    assert (config.model.provider, config.model.model) == ("rehearsal", "rehearsal")
    assert [name for name, one in config.platforms.items() if one.enabled] == ["web"]
    assert "it is no model" in loaded.notices[0]


def test_bot_tokens_enable_their_platforms(tmp_path: Path) -> None:
    environ = {
        "TELEGRAM_BOT_TOKEN": TOKEN,
        "DISCORD_BOT_TOKEN": "abcdefg",
        "SLACK_BOT_TOKEN": "xoxb-1",
        "SLACK_APP_TOKEN": "xapp-1",
        "TELEGRAM_ALLOWED_USERS": "12,13",
        "SLACK_ALLOWED_USERS": "U1",
    }
    config = load_file(None, tmp_path, environ).config
    assert [name for name, one in config.platforms.items() if one.enabled] == [
        "telegram",
        "discord",
        "slack",
        "web",
    ]
    assert telegram(config).token.get_secret_value() == TOKEN
    assert telegram(config).allowed_users == ("12", "13")
    slack = config.platforms["slack"]
    assert isinstance(slack, SlackConfig)
    assert (slack.app_token.get_secret_value(), slack.allowed_users) == ("xapp-1", ("U1",))


def test_a_bot_without_an_allow_list_is_announced(tmp_path: Path) -> None:
    notices = load_file(None, tmp_path, {"TELEGRAM_BOT_TOKEN": TOKEN}).notices
    assert "telegram is on because TELEGRAM_BOT_TOKEN is set" in notices
    assert any("nobody may talk to the bot yet" in one for one in notices)
    assert not [one for one in notices if TOKEN in one]


@pytest.mark.parametrize(
    ("environ", "name", "kind", "base_url"),
    [
        ({"OPENAI_API_KEY": "k1"}, "openai", "openai", "https://api.openai.com/v1"),
        ({"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}, "openai", "openai", "http://127.0.0.1:1/v1"),
        ({"ANTHROPIC_API_KEY": "k1"}, "anthropic", "anthropic", "https://api.anthropic.com"),
        ({"OPENROUTER_API_KEY": "k1"}, "openrouter", "openai", "https://openrouter.ai/api/v1"),
    ],
)
def test_a_key_makes_a_provider_with_its_listed_model(
    environ: dict[str, str], name: str, kind: str, base_url: str, tmp_path: Path
) -> None:
    loaded = load_file(None, tmp_path, environ)
    section = loaded.config.providers[name]
    assert (section.kind, getattr(section, "base_url", "")) == (kind, base_url)
    assert (loaded.config.model.provider, loaded.config.model.model) == (name, DEFAULT_MODELS[name])
    assert any(DEFAULT_MODELS[name] in one for one in loaded.notices)


def test_hermes_model_names_the_model(tmp_path: Path) -> None:
    config = load_file(None, tmp_path, {"OPENAI_API_KEY": "k1", "HERMES_MODEL": "my-model"}).config
    assert config.model.model == "my-model"


def test_several_keys_make_several_providers_and_the_first_answers(tmp_path: Path) -> None:
    environ = {"ANTHROPIC_API_KEY": "k1", "OPENAI_API_KEY": "k2", "OPENROUTER_API_KEY": "k3"}
    config = load_file(None, tmp_path, environ).config
    assert list(config.providers) == ["openai", "anthropic", "openrouter"]
    assert config.model.provider == "openai"


def test_an_empty_variable_counts_as_unset(tmp_path: Path) -> None:
    config = load_file(None, tmp_path, {"TELEGRAM_BOT_TOKEN": " ", "OPENAI_API_KEY": ""}).config
    assert config.model.provider == "rehearsal"
    assert not telegram(config).enabled


@pytest.mark.parametrize(
    ("given", "bind"),
    [("0.0.0.0", "0.0.0.0:8642"), ("0.0.0.0:80", "0.0.0.0:80"), ("::", "[::]:8642"), ("[::1]:9", "[::1]:9")],
)
def test_hermes_bind_overrides_host_or_host_and_port(given: str, bind: str, tmp_path: Path) -> None:
    assert load_file(None, tmp_path, {"HERMES_BIND": given}).config.gateway.bind == bind


def test_hermes_bind_keeps_the_port_of_the_file(tmp_path: Path) -> None:
    text = "gateway: {bind: 127.0.0.1:9000}\n"
    assert load_text(text, tmp_path, {"HERMES_BIND": "0.0.0.0"}).config.gateway.bind == "0.0.0.0:9000"


@pytest.mark.parametrize(
    ("environ", "path"),
    [
        ({"HERMES_MAX_ITERATIONS": "many"}, "HERMES_MAX_ITERATIONS"),
        ({"HERMES_MAX_ITERATIONS": "0"}, "HERMES_MAX_ITERATIONS"),
        ({"HERMES_BIND": "nowhere:port"}, "HERMES_BIND"),
        ({"TELEGRAM_BOT_TOKEN": "YOUR_TOKEN_HERE"}, "TELEGRAM_BOT_TOKEN"),
        ({"TELEGRAM_BOT_TOKEN": "abc"}, "TELEGRAM_BOT_TOKEN"),
        ({"OPENAI_BASE_URL": "localhost:80"}, "OPENAI_BASE_URL"),
        ({"SLACK_BOT_TOKEN": "xoxb-1"}, "platforms.slack.app_token"),
    ],
)
def test_a_wrong_variable_is_named_and_not_quoted(environ: dict[str, str], path: str, tmp_path: Path) -> None:
    (problem,) = problems_of_environment(environ, tmp_path)
    assert (problem.file, problem.line, problem.path) == ("environment", 0, path)
    assert not [value for value in environ.values() if value in problem.found and len(value) > 1]


# ---- file and variables together: the file wins, variables fill what it leaves out -----


def test_the_file_wins_over_a_variable(tmp_path: Path) -> None:
    text = "platforms: {telegram: {enabled: false, token: '9:zzz', allowed_users: [1]}}\nmodel: {model: a}\n"
    environ = {"TELEGRAM_BOT_TOKEN": TOKEN, "TELEGRAM_ALLOWED_USERS": "2", "HERMES_MODEL": "b"}
    config = load_text(text, tmp_path, environ).config
    section = telegram(config)
    assert (section.enabled, section.token.get_secret_value(), section.allowed_users) == (
        False,
        "9:zzz",
        ("1",),
    )
    assert config.model.model == "a"


def test_variables_fill_what_the_file_leaves_out(tmp_path: Path) -> None:
    text = "platforms: {telegram: {enabled: true}}\n"
    environ = {
        "TELEGRAM_BOT_TOKEN": TOKEN,
        "TELEGRAM_ALLOWED_USERS": "2",
        "OPENAI_API_KEY": "k",
        "HERMES_MODEL": "b",
    }
    config = load_text(text, tmp_path, environ).config
    assert telegram(config).token.get_secret_value() == TOKEN
    assert telegram(config).allowed_users == ("2",)
    assert (config.model.provider, config.model.model) == ("openai", "b")


def test_max_iterations_overrides_the_file(tmp_path: Path) -> None:
    config = load_text("agent: {max_turns: 3}\n", tmp_path, {"HERMES_MAX_ITERATIONS": "9"}).config
    assert config.agent.max_turns == 9


def test_a_key_from_the_environment_goes_to_no_other_server(tmp_path: Path) -> None:
    text = "providers: {main: {kind: openai, base_url: http://127.0.0.1:1/v1}, own: {kind: openai}}\n"
    config = load_text(text, tmp_path, {"OPENAI_API_KEY": "k1"}).config
    assert provider(config, "main").api_key.get_secret_value() == ""
    assert provider(config, "own").api_key.get_secret_value() == "k1"


def test_a_variable_switches_on_a_section_that_only_lists_who_may_talk(tmp_path: Path) -> None:
    text = "platforms: {telegram: {allowed_users: [1]}}\n"
    section = telegram(load_text(text, tmp_path, {"TELEGRAM_BOT_TOKEN": TOKEN}).config)
    assert (section.enabled, section.allowed_users) == (True, ("1",))


def test_a_written_section_without_enabled_stays_off_and_says_so(tmp_path: Path) -> None:
    loaded = load_text(f"platforms: {{telegram: {{token: '{TOKEN}'}}}}\n", tmp_path)
    assert not telegram(loaded.config).enabled
    assert any("it stays off" in one for one in loaded.notices)


def test_chat_platforms_share_their_access_keys(tmp_path: Path) -> None:
    platforms = load_file(None, tmp_path).config.platforms
    assert [name for name, one in platforms.items() if isinstance(one, ChatPlatformConfig)] == [
        "telegram",
        "discord",
        "slack",
    ]
