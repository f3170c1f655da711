"""The service under a real systemd: READY, an answer, a crash, a bad configuration, a clean stop."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy.booted import Booted, stage
from tests.waiting import until

pytestmark = [pytest.mark.systemd, pytest.mark.wire]

CONFIG = "/var/lib/hermes/config.yaml"


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Booted]:
    folder = tmp_path_factory.mktemp("systemd")
    staged, space = folder / "stage", folder / "space"
    staged.mkdir()
    space.mkdir()
    booted = Booted(space, staged, stage(staged))
    try:
        yield booted
    finally:
        booted.close()


@pytest.fixture
def running(machine: Booted) -> Booted:
    """The service, serving: each test may leave it in any state."""
    machine.path(CONFIG).unlink(missing_ok=True)
    if machine.show("SubState") != "running":
        machine.systemctl("reset-failed")
        done = machine.systemctl("start")
        assert done.returncode == 0, machine.journal()[-1500:]
    return machine


def _restarts(machine: Booted) -> int:
    return int(machine.show("NRestarts"))


def _answer(machine: Booted, question: str) -> str:
    done = machine.hermes("chat", question)
    assert done.returncode == 0, done.stdout + done.stderr + machine.journal()[-1500:]
    return done.stdout.strip()


def test_starting_waits_for_ready_and_the_service_is_healthy(running: Booted) -> None:
    assert running.show("ActiveState") == "active"
    assert running.show("Result") == "success"
    assert running.show("WatchdogUSec") not in {"", "0", "infinity"}
    health = running.hermes("health")
    assert health.returncode == 0, health.stdout + health.stderr


def test_it_runs_as_a_user_of_its_own_and_its_home_is_private(running: Booted) -> None:
    owner = Path(f"{running.path('/proc')}/{running.show('MainPID')}").stat().st_uid
    assert owner != 0
    home = running.path("/var/lib/private/hermes").stat()
    assert (home.st_uid, home.st_mode & 0o777) == (owner, 0o700)


def test_a_message_is_answered(running: Booted) -> None:
    assert _answer(running, "Are you there?")


def test_after_a_kill_it_is_back_and_answers_again(running: Booted) -> None:
    before, pid = _restarts(running), running.show("MainPID")
    running.run("kill", "-KILL", pid)
    until(
        lambda: running.show("SubState") == "running" and running.show("MainPID") not in {"0", pid},
        within=60, why="systemd starts it again and it says READY",
    )  # fmt: skip
    assert _restarts(running) == before + 1
    assert _answer(running, "And now?")


def test_when_its_loop_hangs_the_watchdog_starts_it_again(running: Booted) -> None:
    drop_in = running.path("/etc/systemd/system/hermes.service.d/fast.conf")
    drop_in.parent.mkdir(exist_ok=True)
    drop_in.write_text("[Service]\nWatchdogSec=4\n")
    running.run("systemctl", "daemon-reload")
    running.systemctl("restart")
    before, pid = _restarts(running), running.show("MainPID")
    try:
        running.run("kill", "-STOP", pid)
        until(
            lambda: running.show("SubState") == "running" and running.show("MainPID") not in {"0", pid},
            within=60,
            why="the watchdog notices and systemd starts it again",
        )
    finally:
        drop_in.unlink()
        running.run("systemctl", "daemon-reload")
    assert _restarts(running) == before + 1
    assert "Watchdog timeout" in running.journal()
    assert _answer(running, "Awake?")


def test_with_the_journal_gone_it_answers_on(running: Booted) -> None:
    """Debian 12's systemd then gives EPIPE on every write to stdout, for ever."""
    pid = running.show("MainPID")
    sockets = [f"systemd-journald{part}.socket" for part in ("", "-dev-log", "-audit")]
    running.run("systemctl", "stop", *sockets, "systemd-journald.service")
    try:
        assert _answer(running, "Who listens?")
    finally:
        running.run("systemctl", "start", *sockets, "systemd-journald.service")
    assert _answer(running, "And now?")
    assert running.show("MainPID") == pid


def test_a_bad_configuration_ends_with_78_and_is_not_tried_again(running: Booted) -> None:
    running.systemctl("stop")
    running.path(CONFIG).write_text("gateway: {drain_timeout: never}\n")
    assert running.systemctl("start").returncode != 0
    until(lambda: running.show("ActiveState") == "failed", within=30, why="the service is given up")
    assert running.show("ExecMainStatus") == "78"
    assert _restarts(running) == 0
    assert "config.yaml:1" in running.journal()


def test_a_stop_is_clean(running: Booted) -> None:
    done = running.systemctl("stop")
    assert done.returncode == 0
    assert running.show("ActiveState") == "inactive"
    assert running.show("Result") == "success"
    assert running.show("ExecMainStatus") == "0"
