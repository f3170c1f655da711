"""What systemd hears."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.runtime.virtual import run_virtual, running_clock
from hermes.runtime.watchdog import SystemdNotifier


@pytest.fixture(params=["path", "abstract"])
def listener(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[socket.socket, str]]:
    if request.param == "path":
        address, bound = str(tmp_path / "notify"), str(tmp_path / "notify")
    else:
        address, bound = f"@{tmp_path}/notify", f"\0{tmp_path}/notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(bound)
        sock.settimeout(5)
        yield sock, address


def test_each_word_of_the_protocol(listener: tuple[socket.socket, str]) -> None:
    sock, address = listener
    notifier = SystemdNotifier.from_environment({"NOTIFY_SOCKET": address}, pid=1)
    notifier.ready("two\nlines")
    notifier.status("busy")
    notifier.alive()
    notifier.stopping()
    heard = [sock.recv(1000) for _ in range(4)]
    assert heard == [b"READY=1\nSTATUS=two lines", b"STATUS=busy", b"WATCHDOG=1", b"STOPPING=1"]
    assert notifier.failed == 0


@pytest.mark.parametrize(
    ("environ", "interval"),
    [
        ({"NOTIFY_SOCKET": "@x", "WATCHDOG_USEC": "2000000"}, 2.0),
        ({"NOTIFY_SOCKET": "@x", "WATCHDOG_USEC": "2000000", "WATCHDOG_PID": "7"}, 2.0),
        ({"NOTIFY_SOCKET": "@x", "WATCHDOG_USEC": "2000000", "WATCHDOG_PID": "8"}, None),
        ({"NOTIFY_SOCKET": "@x", "WATCHDOG_USEC": "0"}, None),
        ({"NOTIFY_SOCKET": "@x", "WATCHDOG_USEC": "soon"}, None),
        ({"WATCHDOG_USEC": "2000000"}, None),
        ({}, None),
    ],
)
def test_the_interval_is_for_this_process_only(environ: dict[str, str], interval: float | None) -> None:
    assert SystemdNotifier.from_environment(environ, pid=7).watchdog_interval == interval


def test_a_socket_that_is_gone_is_counted_and_none_at_all_is_silence() -> None:
    gone = SystemdNotifier("@nobody-listens-here")
    gone.ready()
    assert gone.failed == 1
    absent = SystemdNotifier(None)
    absent.ready()
    assert absent.failed == 0


def test_the_loop_gives_a_sign_at_half_the_interval_and_none_while_unwell() -> None:
    async def body() -> None:
        clock = running_clock()
        well = True
        notifier = SystemdNotifier("@nobody-listens-here", watchdog_interval=2.0)
        feeding = asyncio.ensure_future(notifier.feed(clock, healthy=lambda: well))
        await clock.sleep(9.5)
        assert notifier.failed == 10
        well = False
        await clock.sleep(10)
        assert notifier.failed == 10
        feeding.cancel()
        await asyncio.wait([feeding])
        await SystemdNotifier(None).feed(clock)

    run_virtual(body())
