"""``send_file``: what goes out is what the file held then; a kill loses nothing and doubles nothing unmarked (R22)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.simulation.outside import Calls, answer, tool_call
from tests.simulation.world import World

Make = Callable[..., World]
pytestmark = pytest.mark.simulation
SENDS = tool_call("send_file", path="report.txt")
KILLS = [
    "after_tool_intent", "after_tool_effect", "after_tool_result", "before_t2", "after_t2", "sending_before_bytes",
    "sending_after_bytes",
]  # fmt: skip


def put(tmp_path: Path, text: str, name: str = "report.txt") -> None:
    (tmp_path / "work").mkdir(exist_ok=True)
    (tmp_path / "work" / name).write_text(text)


def result(world: World) -> str:
    """What the model was told of its call."""
    [item] = [i for i in world.model.requests[-1].items if getattr(i, "name", "") == "send_file"]
    return str(getattr(item, "text", ""))


def test_a_file_goes_out_after_the_answer_as_it_was_when_it_was_sent(make: Make, tmp_path: Path) -> None:
    world = make([SENDS, answer("here it is", after=30.0)])
    put(tmp_path, "the first version")
    world.say("report please")
    world.run(10)
    put(tmp_path, "another one")
    world.run(60)
    assert world.heard() == ["here it is", "[report.txt] the first version"]


def test_files_keep_their_order_and_each_goes_once(make: Make, tmp_path: Path) -> None:
    both = Calls((("send_file", {"path": "b.txt"}), ("send_file", {"path": "a.txt", "name": "../x/first"})))
    world = make([both, tool_call("send_file", path="b.txt"), answer("two files"), answer("and no more")])
    put(tmp_path, "A", "a.txt")
    put(tmp_path, "B", "b.txt")
    world.say("files")
    world.run(60)
    assert world.heard() == ["two files", "[b.txt] B", "[first.txt] A"]
    world.say("thanks")
    assert world.run(60).heard()[3:] == ["and no more"]


@pytest.mark.parametrize("nth", [1, 2, 3])
@pytest.mark.parametrize("point", KILLS)
def test_a_kill_anywhere_loses_no_file_and_doubles_none_unmarked(
    make: Make, tmp_path: Path, point: str, nth: int
) -> None:
    world = make([SENDS, answer("here it is"), answer("here it is")])
    put(tmp_path, "content")
    world.checkpoints.at, world.checkpoints.after = point, nth
    world.say("report please")
    world.run(300)
    shown = [text.split(") ")[-1] for text in world.heard()]
    assert set(shown) == {"here it is", "[report.txt] content"}
    assert len(world.server.unmarked("7")) == len(set(world.server.unmarked("7")))


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("missing.txt", "cannot be read"),
        ("../config.yaml", "outside of what may be read"),
        ("/etc/hostname", "outside of what may be read"),
        ("empty.txt", "is empty"),
        ("big.txt", "larger than"),
    ],
)
def test_what_cannot_be_sent_is_told_to_the_model(make: Make, tmp_path: Path, path: str, told: str) -> None:
    world = make([tool_call("send_file", path=path), answer("sorry")], settings={"gateway": {"media_max_bytes": 1000}})
    put(tmp_path, "", "empty.txt")
    put(tmp_path, "x" * 2000, "big.txt")
    world.say("file please")
    world.run(60)
    assert world.heard() == ["sorry"]
    assert told in result(world)


def test_a_file_that_left_the_spool_is_a_dead_letter_and_the_answer_is_not(make: Make, tmp_path: Path) -> None:
    world = make([SENDS, answer("here it is", after=30.0)])
    put(tmp_path, "content")
    world.say("report please")
    world.run(10)
    [kept] = [path for path in (tmp_path / "spool").rglob("*") if path.is_file()]
    kept.unlink()
    world.run(60)
    assert world.heard() == ["here it is"]
    assert world.rows("SELECT reason FROM outbox WHERE state='failed'") == [("its file is not in the spool any more",)]
