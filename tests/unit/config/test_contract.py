"""What other people's files and scripts rely on: names, defaults and kinds of value."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hermes.config.fields import parse_duration, split_host_port
from hermes.config.reload import diff
from tests.unit.config.loading import load_file, load_text, problems_of

SAMPLE = (Path(__file__).parent / "sample.yaml").read_text()
"""The published sample; its names are samples, the values of its keys are the defaults."""


def test_the_published_sample_passes_with_no_variable_set(tmp_path: Path) -> None:
    config = load_text(SAMPLE, tmp_path).config
    assert (config.model.provider, config.model.model) == ("main", "some-model")
    assert config.fallback_providers[0].provider == "spare"


def test_the_published_sample_states_the_defaults(tmp_path: Path) -> None:
    defaults = load_file(None, tmp_path).config
    changes = diff(defaults, load_text(SAMPLE, tmp_path).config)
    samples = (
        "timezone",
        "model.",
        "providers",
        "fallback_providers",
        "compression.provider",
        "compression.model",
    )
    different = [*changes.live, *changes.link, *changes.process]
    assert [path for path in different if not path.startswith(samples)] == []


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0),
        ("90", 90),
        ("1.5", 1.5),
        ("200ms", 0.2),
        ("30s", 30),
        ("5m", 300),
        ("24h", 86_400),
        ("365d", 31_536_000),
    ],
)
def test_a_duration_is_seconds_or_a_number_with_a_unit(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "s", "-1s", "1y", "1 h 30 m", "1h30m", "12:30", "1e9", "inf", "nan", "٣s", "9" * 40]
)
def test_anything_else_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="not a duration"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [("127.0.0.1:8642", "127.0.0.1", 8642), ("[::1]:1", "::1", 1), ("localhost:65535", "localhost", 65_535)],
)
def test_an_address_to_listen_on_has_host_and_port(text: str, host: str, port: int) -> None:
    assert split_host_port(text) == (host, port)


@pytest.mark.parametrize(
    ("bind", "open_to_others"),
    [
        ("127.0.0.1:1", False),
        ("[::1]:1", False),
        ("localhost:1", False),
        ("0.0.0.0:1", True),
        ("[::]:1", True),
    ],
)
def test_an_address_that_others_can_reach_is_announced(
    bind: str, open_to_others: bool, tmp_path: Path
) -> None:
    notices = load_text(f'gateway: {{bind: "{bind}"}}\n', tmp_path).notices
    assert any("from other machines" in one for one in notices) is open_to_others


@pytest.mark.parametrize(
    "text", ["", "host", ":80", "host:", "host:0", "host:65536", "::1:80", "[host]:80", "a b:80", "h:²"]
)
def test_anything_else_is_no_address_to_listen_on(text: str) -> None:
    with pytest.raises(ValueError, match=r"port|host|bracket"):
        split_host_port(text)


def key_is_refused(key: str, home: Path) -> bool:
    text = f"providers: {{main: {{kind: openai, base_url: http://127.0.0.1:1/v1, api_key: {key!r}}}}}\n"
    return bool(problems_of(text, home))


PLACEHOLDERS = (
    "YOUR_TOKEN_HERE|your-api-key|changeme|CHANGE_ME|replace-me|<token>|...|xxxx|sk-...|sk-xxx|sk-your-key-goes-here"
    "|INSERT_KEY_HERE|API_KEY_HERE|TODO|****|123456:ABC-DEF1234ghIkl-zyx57W2v1u"
)


@pytest.mark.parametrize("key", PLACEHOLDERS.split("|"))
def test_a_placeholder_is_no_secret(key: str, tmp_path: Path) -> None:
    assert key_is_refused(key, tmp_path)


@pytest.mark.parametrize(
    "key", ["", "none", "sk-fake", "my-local-key", "secret", "sk-1234", "test", "no-key", "x", "EMPTY"]
)
def test_a_short_key_of_a_local_server_is_accepted(key: str, tmp_path: Path) -> None:
    assert not key_is_refused(key, tmp_path)


def test_reading_a_configuration_brings_no_sdk() -> None:
    code = (
        "import sys; import tests.unit.config.loading; "
        "print({'telegram', 'discord', 'slack_sdk', 'slack_bolt', 'openai', 'anthropic', 'mcp'} & {*sys.modules})"
    )
    root = Path(__file__).parents[3]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root)
    assert done.stdout.strip() == "set()"
