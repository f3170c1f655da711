"""systemd's notification protocol, see sd_notify(3).

No library: the common one (sdnotify 0.3.2) was last released in 2017 and swallows every error uncounted.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping

from hermes.core.clock import Clock


class SystemdNotifier:
    """Sends datagrams to `address`; without one every call does nothing.

    An address that begins with `@` is an abstract socket. Failures are counted in `failed`, never raised.
    `watchdog_interval`: seconds within which systemd wants a sign of life; None without a watchdog.
    """

    def __init__(self, address: str | None, *, watchdog_interval: float | None = None) -> None:
        self._address = "\0" + address[1:] if address and address.startswith("@") else address or None
        self.watchdog_interval = watchdog_interval if self._address else None
        self.failed = 0

    @classmethod
    def from_environment(cls, environ: Mapping[str, str], *, pid: int) -> SystemdNotifier:
        """From NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID (a watchdog for another pid is ignored)."""
        text = environ.get("WATCHDOG_USEC", "")
        meant = environ.get("WATCHDOG_PID")
        mine = not meant or meant == str(pid)
        interval = int(text) / 1e6 if mine and text.isascii() and text.isdigit() else 0.0
        return cls(environ.get("NOTIFY_SOCKET"), watchdog_interval=interval or None)

    def ready(self, status: str = "") -> None:
        """The service is up; `status` is shown by `systemctl status`."""
        self._send("READY=1", *(_status(status) if status else ()))

    def stopping(self) -> None:
        """An orderly stop has begun."""
        self._send("STOPPING=1")

    def status(self, text: str) -> None:
        """One line for `systemctl status`."""
        self._send(*_status(text))

    def alive(self) -> None:
        """One sign of life."""
        self._send("WATCHDOG=1")

    async def feed(self, clock: Clock, *, healthy: Callable[[], bool] = lambda: True) -> None:
        """A sign of life at half the interval, from the loop itself, so that a hung loop gives none.

        Never returns while there is a watchdog; returns at once without one. Silent while not `healthy()`.
        """
        while self.watchdog_interval is not None:
            if healthy():
                self.alive()
            await clock.sleep(self.watchdog_interval / 2)

    def _send(self, *lines: str) -> None:
        if self._address is None:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
                sender.setblocking(False)
                sender.connect(self._address)
                sender.send("\n".join(lines).encode())
        except OSError:
            self.failed += 1


def _status(text: str) -> tuple[str]:
    return ("STATUS=" + " ".join(text.split()),)
