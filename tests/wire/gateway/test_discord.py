"""The gateway as a real process in front of Discord: an answer, a restart, kill -9."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.core.delivery import MARK_PREFIX
from tests.wire.gateway.harness import Discord, Gateway, Model, configuration, free_port
from tests.wire.gateway.invariants import check_disk
from tests.wire.gateway.kill_points import SCENARIOS, SENDING, Point, play_on

pytestmark = pytest.mark.wire
SHORT: tuple[Point, ...] = (("plain", "sending_after_bytes"),)


@contextlib.contextmanager
def outside() -> Iterator[tuple[Discord, Model]]:
    """Discord in front, a model behind."""
    discord = Discord()
    try:
        model = Model()
        try:
            yield discord, model
        finally:
            model.close()
    finally:
        discord.close()


def test_a_message_is_answered_and_what_is_said_while_it_is_down_is_answered_after_the_start(
    tmp_path: Path,
) -> None:
    with outside() as (discord, model):
        gateway = Gateway(tmp_path / "home", configuration(discord, model, free_port()))
        try:
            gateway.start()
            discord.connected()
            discord.say(10, "«one»")
            assert discord.wait(10, "«one»") == ["You said: User10: «one»"]
            discord.order("say", {"chat": 500, "text": "«private»", "user": 20})
            assert discord.wait(500, "«private»") == ["You said: «private»"]
            assert gateway.stop() == 0
            discord.say(10, "«two»")
            discord.say(11, "«in another channel»")
            discord.order("say", {"chat": 500, "text": "«private again»", "user": 20})
            gateway.start()
            discord.wait(10, "«two»")
            discord.wait(11, "«in another channel»")
            discord.wait(500, "«private again»")
            assert gateway.stop() == 0
            check_disk(gateway)
            assert discord.texts(10) == ["You said: User10: «one»", "You said: User10: «two»"]
        finally:
            gateway.close()


@pytest.mark.parametrize(
    "scenario",
    [pytest.param(s, marks=() if s in SHORT else pytest.mark.long) for s in SCENARIOS],
    ids="-".join,
)
def test_killed_at_a_named_point_there_is_one_answer_and_never_a_mark(tmp_path: Path, scenario: Point) -> None:
    """Discord knows a repeated create by its nonce, so no send is ever doubtful."""
    with outside() as (discord, model):
        end = play_on(discord, model, tmp_path / "home", SCENARIOS.index(scenario), scenario)
        assert end.code == -9, f"{scenario[1]} was never reached"
        assert len(end.first) == 1
        assert len(end.second) == 1
        assert not [text for text in (*end.first, *end.second) if text.startswith(MARK_PREFIX)]
        if scenario[1] in ("after_t2", *SENDING):
            assert end.committed
            assert end.asked == end.asked_before
