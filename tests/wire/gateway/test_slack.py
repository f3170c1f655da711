"""The gateway as a real process in front of Slack: an answer, a restart, kill -9."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from hermes.core.delivery import MARK_PREFIX
from tests.waiting import until
from tests.wire.gateway.harness import Gateway, configuration, free_port
from tests.wire.gateway.invariants import check_disk
from tests.wire.gateway.kill_points import SCENARIOS, SENDING, Point, play_on
from tests.wire.gateway.slack_outages import OUTAGES, outside, play

pytestmark = pytest.mark.wire
SHORT_OUTAGES = ("ghost",)
SHORT: tuple[Point, ...] = (("plain", "after_t1"), ("plain", "sending_after_bytes"))


def test_a_message_is_answered_and_what_is_said_while_it_is_down_is_answered_after_the_start(
    tmp_path: Path,
) -> None:
    with outside() as (slack, model):
        gateway = Gateway(tmp_path / "home", configuration(slack, model, free_port()))
        try:
            slack.order("channel", {"name": "C1"})
            gateway.start()
            slack.connected()
            slack.say(10, "«one»")
            assert slack.wait(10, "«one»") == ["You said: «one»"]
            top = slack.order("say", {"chat": "C1", "text": "<@U0BOT> «in a channel»", "user": 20})
            slack.wait("C1", "«in a channel»")
            assert gateway.stop() == 0
            slack.say(10, "«two»")
            slack.say(11, "«of somebody new»")
            slack.order("say", {"chat": "C1", "text": "«in the thread»", "user": 20, "thread": top})
            gateway.start()
            slack.wait(10, "«two»")
            slack.wait(11, "«of somebody new»")
            slack.wait("C1", "«in the thread»")
            assert gateway.stop() == 0
            check_disk(gateway)
            assert slack.texts(10) == ["You said: «one»", "You said: «two»"]
            assert {seen["thread"] for seen in slack.read("chat", id="C1")} == {top}
        finally:
            gateway.close()


def test_by_http_a_signed_event_is_answered_and_a_forged_one_changes_nothing(tmp_path: Path) -> None:
    with outside() as (slack, model):
        config = configuration(slack, model, free_port())
        section = config["platforms"]["slack"]
        section |= {"mode": "http", "app_token": "", "signing_secret": slack.where["signing_secret"]}
        gateway = Gateway(tmp_path / "home", config)
        try:
            gateway.start()
            slack.order("request_url", {"url": f"{gateway.url}/hooks/slack"})
            until(lambda: slack.calls("users.conversations"), within=10, why="its link is up")
            assert slack.say(10, "«one»")
            slack.wait(10, "«one»")
            assert set(slack.read("state")["http"]) == {200}
            event = {"type": "event_callback", "event": {"type": "message", "channel": "D0010", "channel_type": "im",
                     "user": "U0010", "text": "«forged»", "ts": "1900000000.000100"}}  # fmt: skip
            for headers in (
                {}, {"X-Slack-Request-Timestamp": "1", "X-Slack-Signature": "v0=0"},
                {"X-Slack-Request-Timestamp": "²", "X-Slack-Signature": "v0=\xe4"},
            ):  # fmt: skip
                assert posted(f"{gateway.url}/hooks/slack", event, headers) == 401
            assert posted(f"{gateway.url}/hooks/discord", event, {}) == 404
            assert posted(f"{gateway.url}/hooks/slack", "x" * (2 << 20), {}) == 413
            slack.say(10, "«two»")
            slack.wait(10, "«two»")
            assert gateway.stop() == 0
            check_disk(gateway)
            assert not [text for text in slack.texts(10) if "forged" in text]
        finally:
            gateway.close()


@pytest.mark.long
def test_a_flood_ban_is_kept_over_a_kill_and_nobody_sends_into_it(tmp_path: Path) -> None:
    with outside() as (slack, model):
        gateway = Gateway(tmp_path / "home", configuration(slack, model, free_port()))
        try:
            gateway.start()
            slack.connected()
            slack.order("flood", {"limit": 2, "window": 30, "ban": 8})
            for number in range(3):
                slack.say(10, f"«{number}»")
                until(lambda: slack.calls("chat.postMessage"), within=20, why="it is being answered")
            until(lambda: slack.read("state")["bans"] == 1, within=30, why="a send was refused")
            gateway.kill()
            slack.say(11, "«another chat»")
            gateway.start()
            slack.wait(11, "«another chat»")
            for number in range(3):
                slack.wait(10, f"«{number}»", within=60)
            assert slack.read("state")["violations"] == 0
            assert gateway.stop() == 0
            check_disk(gateway)
        finally:
            gateway.close()


def posted(url: str, body: object, headers: dict[str, str]) -> int:
    """The status of the answer."""
    told = {"Content-Type": "application/json", **headers}
    request = urllib.request.Request(url, data=json.dumps(body).encode(), headers=told, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


@pytest.mark.parametrize(
    "scenario",
    [pytest.param(s, marks=() if s in SHORT else pytest.mark.long) for s in SCENARIOS],
    ids="-".join,
)
def test_killed_at_a_named_point_there_is_one_answer_and_never_a_mark(tmp_path: Path, scenario: Point) -> None:
    """What we sent is found by its metadata, so no send is ever doubtful."""
    with outside() as (slack, model):
        end = play_on(slack, model, tmp_path / "home", SCENARIOS.index(scenario), scenario)
        assert end.code == -9, f"{scenario[1]} was never reached"
        assert len(end.first) == 1
        assert len(end.second) == 1
        assert not [text for text in (*end.first, *end.second) if text.startswith(MARK_PREFIX)]
        if scenario[1] in ("after_t2", *SENDING):
            assert end.committed
            assert end.asked == end.asked_before


@pytest.mark.parametrize(
    "outage",
    [pytest.param(o, marks=() if o in SHORT_OUTAGES else pytest.mark.long) for o in OUTAGES],
)
def test_whatever_slack_does_it_comes_back_by_itself_and_nothing_is_lost_or_doubled(
    tmp_path: Path, outage: str
) -> None:
    left = play(tmp_path, outage)
    assert left.repeats == 0
    assert left.states[-1] == "up"
    for chat, answers in left.answers.items():
        numbers = re.findall(rf"«{chat}\.(\d)»", "".join(answers))
        assert numbers == sorted(numbers)
