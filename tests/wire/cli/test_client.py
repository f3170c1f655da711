"""While a gateway runs, the command line is its client (R33)."""

from __future__ import annotations

import json
import signal
import urllib.request
from urllib.parse import urlsplit

import pytest

from tests.waiting import until
from tests.wire.cli.home import Home, sentence

pytestmark = pytest.mark.wire


def test_chat_prints_the_answer_and_nothing_else(served: Home) -> None:
    done = served.hermes("chat", "are you there?")
    assert done.returncode == 0
    assert sentence(done) == ""
    assert "“are you there?”" in done.stdout


def test_chat_reads_standard_input(served: Home) -> None:
    assert "“by pipe”" in served.hermes("chat", said="by pipe\n").stdout
    assert "“by dash”" in served.hermes("chat", "-", said="by dash").stdout


def test_a_retry_is_told_on_standard_error_only(served: Home) -> None:
    done = served.hermes("chat", "/rehearse 429")
    assert done.returncode == 0
    assert "trying again in" in done.stderr
    assert "trying again in" not in done.stdout
    assert "\x1b" not in done.stderr


def test_chat_speaks_to_programs(served: Home) -> None:
    found = json.loads(served.hermes("chat", "--json", "for a program").stdout)
    assert "“for a program”" in found["text"]
    assert found["notices"] == []


def test_an_interrupted_chat_leaves_politely(served: Home) -> None:
    asked = served.start("chat", "/rehearse slow")
    until(lambda: _running(served) or asked.poll() is not None, within=30, why="its turn runs")
    asked.send_signal(signal.SIGINT)
    out, err = asked.communicate(timeout=30)
    assert asked.returncode == 130
    assert "Traceback" not in err
    assert out == ""


def _running(home: Home) -> int:
    items = {item["name"]: item for item in json.loads(home.hermes("status", "--json").stdout)["items"]}
    running: int = items["queues"]["figures"]["running_turns"]
    return running


def test_status_shows_every_part_and_no_colour_in_a_pipe(served: Home) -> None:
    done = served.hermes("status")
    assert done.returncode == 0
    assert "\x1b" not in done.stdout
    for part in ("ready", "model rehearsal/rehearsal", "queues", "loop", "disk"):
        assert part in done.stdout


def test_status_speaks_to_programs(served: Home) -> None:
    found = json.loads(served.hermes("status", "--json").stdout)
    assert found["ready"] is True
    assert found["home"] == str(served.path)


def test_the_page_opens_by_the_url_that_status_prints(served: Home) -> None:
    url = served.hermes("status", "--page-url").stdout.strip()
    assert urlsplit(url).fragment.startswith("token=")
    with urllib.request.urlopen(url, timeout=10) as page:
        assert page.status == 200
    assert json.loads(served.hermes("status", "--page-url", "--json").stdout) == {"page_url": url}


def test_health_is_the_answer_of_readyz(served: Home) -> None:
    assert served.hermes("health").stdout == "ready\n"
    assert json.loads(served.hermes("health", "--json").stdout) == {"ready": True, "reasons": []}


def test_health_asks_the_loopback_when_the_gateway_listens_everywhere(served: Home) -> None:
    everywhere = Home(served.path, {"HERMES_BIND": f"0.0.0.0:{served.port}"})
    assert everywhere.hermes("health").returncode == 0


def test_health_finds_the_address_in_the_configuration(served: Home) -> None:
    file = served.path.parent / "other.yaml"
    file.write_text(f'gateway:\n  bind: "127.0.0.1:${{PORT:-{served.port}}}"\n', "utf-8")
    asking = Home(served.path, {"HERMES_BIND": ""})
    assert asking.hermes("health", "--config", str(file)).stdout == "ready\n"


def test_send_and_dead_letters_go_through_the_gateway(served: Home) -> None:
    found = json.loads(served.hermes("send", "web:cli", "from outside", "--json").stdout)
    assert found["gateway"] is True
    assert found["parts"] == 1
    assert served.hermes("dead-letters", "list").stdout == "no dead letters\n"
    assert json.loads(served.hermes("dead-letters", "list", "--json").stdout) == []


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("send", "nowhere:1", "hi"), "no platform 'nowhere' is configured (configured: web)"),
        (("send", "web", "hi"), "names no chat"),
        (("send", "web:cli", " "), "the text is empty"),
        (("dead-letters", "retry", "out:99"), "no dead letter out:99"),
        (("dead-letters", "drop", "99"), "out:12 or in:7"),
    ],
)
def test_what_the_gateway_refuses_is_a_sentence_and_code_1(
    served: Home, arguments: tuple[str, ...], says: str
) -> None:
    done = served.hermes(*arguments)
    assert done.returncode == 1
    assert says in sentence(done)
    assert done.stdout == ""


def test_a_second_gateway_on_the_home_is_refused(served: Home) -> None:
    done = served.hermes("run")
    assert done.returncode == 78
    assert "another gateway (pid " in sentence(done)
