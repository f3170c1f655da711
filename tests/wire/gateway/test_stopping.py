"""SIGTERM, a second one, SIGHUP and a second gateway on the same home: real signals to a real process."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.waiting import until
from tests.wire.gateway.harness import Gateway, Lab, free_port, lab, merged
from tests.wire.gateway.invariants import check_chats, check_disk, unanswered

pytestmark = pytest.mark.wire


def load(it: Lab, number: int, *, latency: float) -> dict[int, list[str]]:
    """Turns under way in so many chats."""
    it.model.order("config", {"latency": latency})
    said = {chat: [f"«{chat}»"] for chat in range(10, 10 + number)}
    for chat, (text,) in said.items():
        it.telegram.say(chat, text)
    it.model.read("wait", requests=number, timeout=20)
    return said


def test_a_stop_under_load_drains_and_what_is_said_meanwhile_is_answered_after_the_start(tmp_path: Path) -> None:
    with lab(tmp_path) as it:
        it.gateway.start()
        said = load(it, 10, latency=1.0)
        begun = time.monotonic()
        assert it.gateway.stop() == 0
        assert time.monotonic() - begun < 5 + 6  # drain_timeout, and what flushing and closing may take
        assert not unanswered(it.telegram, said), "turns under way are drained, not dropped"
        check_disk(it.gateway)
        for number in range(10):
            it.telegram.say(20 + number, f"«down {number}»")
            said[20 + number] = [f"«down {number}»"]
        it.model.order("config", {"latency": 0})
        it.gateway.start()
        until(lambda: not unanswered(it.telegram, said), within=20, why="all is answered")
        assert it.gateway.stop() == 0
        check_disk(it.gateway)
        assert check_chats(it.telegram, said).repeats == 0


def test_turns_that_outlast_the_drain_are_given_back_and_resume(tmp_path: Path) -> None:
    with lab(tmp_path, settings={"gateway": {"drain_timeout": 1}}) as it:
        it.gateway.start()
        said = load(it, 5, latency=15.0)
        begun = time.monotonic()
        assert it.gateway.stop() == 0
        assert time.monotonic() - begun < 1 + 6
        assert it.gateway.rows("SELECT count(*), sum(crashes) FROM turns WHERE state='running'") == [(5, 0)]
        it.model.order("config", {"latency": 0})
        it.gateway.start()
        until(lambda: not unanswered(it.telegram, said), within=20, why="all is answered")
        assert it.gateway.stop() == 0
        check_disk(it.gateway)
        assert check_chats(it.telegram, said).repeats == 0


def test_a_second_signal_hurries(tmp_path: Path) -> None:
    with lab(tmp_path, settings={"gateway": {"drain_timeout": 60}}) as it:
        it.gateway.start()
        said = load(it, 3, latency=15.0)
        it.gateway.signal(signal.SIGTERM)
        until(lambda: it.gateway.events("stopping"), within=5, why="the stop has begun")
        begun = time.monotonic()
        it.gateway.signal(signal.SIGTERM)
        assert it.gateway.wait_exit() == 0
        assert time.monotonic() - begun < 6
        it.model.order("config", {"latency": 0})
        it.gateway.start()
        until(lambda: not unanswered(it.telegram, said), within=20, why="all is answered")
        assert it.gateway.stop() == 0
        check_disk(it.gateway)


def test_a_stop_while_telegram_hangs_ends_in_time_and_keeps_the_answer(tmp_path: Path) -> None:
    with lab(tmp_path, settings={"gateway": {"drain_timeout": 2}}) as it:
        it.gateway.start()
        it.telegram.fault("stall", seconds=60, endpoint="sendMessage", times=None)
        it.telegram.say(7, "«stuck»")
        until(lambda: it.telegram.calls("sendMessage"), within=10, why="the send is under way")
        begun = time.monotonic()
        assert it.gateway.stop() == 0
        assert time.monotonic() - begun < 2 + 6
        (row,) = it.gateway.rows("SELECT state, mark FROM outbox")
        assert row in [("sending", 0), ("pending", 1)], "the bytes may have gone: the next start marks it"


def test_a_second_gateway_on_the_home_is_refused_with_a_sentence(tmp_path: Path) -> None:
    with lab(tmp_path) as it:
        it.gateway.start()
        second = subprocess.run(
            [*it.gateway.command, "--config", str(it.gateway.config_file)], capture_output=True, text=True,
            env={"HERMES_HOME": str(it.gateway.home), "PATH": ""}, timeout=30, check=False,
        )  # fmt: skip
        assert second.returncode == 78
        assert it.gateway.process is not None
        assert str(it.gateway.process.pid) in second.stderr
        assert "Traceback" not in second.stderr + second.stdout
        it.telegram.say(7, "still here?")
        it.telegram.wait(7, "still here?")
        assert it.gateway.stop() == 0


def test_a_second_gateway_with_the_same_token_stands_by_and_takes_over(tmp_path: Path) -> None:
    with lab(tmp_path) as it:
        config = merged(it.gateway.config, {"gateway": {"bind": f"127.0.0.1:{free_port()}"}})
        second = Gateway(tmp_path / "second", config)
        second.runtime = it.gateway.runtime
        try:
            it.gateway.start()
            it.telegram.say(7, "«one»")
            it.telegram.wait(7, "«one»")
            second.start()
            until(lambda: second.events("link_failed"), within=20, why="the second sees the first")
            it.telegram.say(7, "«two»")
            it.telegram.wait(7, "«two»")
            it.gateway.kill()
            it.telegram.say(7, "«three»")
            it.telegram.wait(7, "«three»", within=30)
            assert second.stop() == 0
            check_disk(second)
            assert check_chats(it.telegram, {7: ["«one»", "«two»", "«three»"]}).repeats == 0
            assert [text for (text,) in second.rows("SELECT outcome FROM inbox")] == ["answered"]
        finally:
            second.close()


def test_a_reload_of_a_broken_file_keeps_the_last_good_one(tmp_path: Path) -> None:
    with lab(tmp_path) as it:
        it.gateway.start()
        it.gateway.config_file.write_text("agent: {max_turns: -3}\nplatfroms: {}\n")
        it.gateway.signal(signal.SIGHUP)
        (refused,) = until(lambda: it.gateway.events("reload_refused"), within=10, why="the reload is refused")
        assert "max_turns" in str(refused)
        assert "platfroms" in str(refused)
        it.telegram.say(7, "go on")
        it.telegram.wait(7, "go on")
        assert it.gateway.stop() == 0


def test_a_changed_allow_list_is_in_force_at_once(tmp_path: Path) -> None:
    with lab(tmp_path, settings={"platforms": {"telegram": {"allowed_users": [7, 9]}}}) as it:
        it.gateway.start()
        it.telegram.say(8, "«let me in»")
        it.model.order("config", {"latency": 2})
        it.telegram.say(9, "«first of nine»")
        it.model.read("wait", requests=1, timeout=10)
        it.telegram.say(9, "«waits in the queue»")
        until(lambda: it.telegram.read("state")["pending"] == 0, within=10, why="it is accepted")
        allowed = {"platforms": {"telegram": {"allowed_users": [7, 8]}}}
        it.gateway.write_config(merged(it.gateway.config, allowed))
        it.gateway.signal(signal.SIGHUP)
        until(lambda: it.gateway.events("reloaded"), within=10, why="the file is read")
        it.telegram.say(8, "«now I may»")
        it.telegram.wait(8, "«now I may»")
        it.telegram.say(9, "«too late»")
        it.telegram.say(7, "«end»")
        it.telegram.wait(7, "«end»")
        assert it.gateway.stop() == 0
        heard = "\n".join(it.telegram.texts(9))
        assert "queue" not in heard
        assert "too late" not in heard
        assert "let me in" not in "\n".join(it.telegram.texts(8))
        outcomes = {json.loads(raw)["message"]["text"]: (o, r) for raw, o, r in it.gateway.rows(
            "SELECT raw, outcome, outcome_reason FROM inbox")}  # fmt: skip
        assert outcomes["«waits in the queue»"] == ("ignored", "access")
        assert it.gateway.rows("SELECT user_id, count FROM stranger_counts ORDER BY user_id") == [("8", 1), ("9", 1)]
        check_disk(it.gateway)
