"""The one path of a message, in virtual time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.simulation.outside import answer, cut_after, refused, status, tool_call
from tests.simulation.world import World

pytestmark = pytest.mark.simulation


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Any]:
    worlds: list[World] = []

    def new(*args: Any, **kwargs: Any) -> World:
        worlds.append(World(tmp_path, *args, **kwargs))
        return worlds[-1]

    yield new
    for world in worlds:
        world.close()


def test_a_message_gets_its_answer_once(make: Any) -> None:
    world = make([answer("hello")])
    world.say("hi")
    assert world.run().heard() == ["hello"]
    assert world.outcomes() == [("hi", "answered")]


def test_a_cut_stream_is_retried_and_the_user_sees_one_answer(make: Any) -> None:
    world = make([cut_after(3), answer("hello")])
    world.say("hi")
    assert world.run().heard() == ["hello"]
