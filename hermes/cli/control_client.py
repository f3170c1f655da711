"""The other end of ``HERMES_HOME/control.sock`` (R33): one JSON object a line each way."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hermes.core.errors import HermesError

QUICK_SECONDS = 10.0
"""How long a running gateway may take for anything but a chat."""
SOCKET_NAME = "control.sock"

Event = dict[str, Any]


class NoGateway(HermesError):
    """Nobody answers in this home; ``absent`` when nobody listens there at all."""

    def __init__(self, text: str, *, absent: bool = False) -> None:
        super().__init__(text)
        self.absent = absent


def not_listening(home: Path) -> NoGateway:
    """The home's lock is held, and still nobody listens."""
    return NoGateway(
        f"a gateway holds {home} but does not listen: it is starting or stopping; try again in a moment"
    )


class Refused(HermesError):
    """The gateway answered with a sentence that says why not."""


class ControlClient:
    """One connection to the gateway of ``home``; a context manager. Raises NoGateway when there is none."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.settimeout(QUICK_SECONDS)
            self._socket.connect(str(home / SOCKET_NAME))
        except (FileNotFoundError, ConnectionRefusedError, NotADirectoryError):
            self._socket.close()
            raise NoGateway(f"no gateway runs in {home}: start it with `hermes run`", absent=True) from None
        except OSError as error:
            self._socket.close()
            reason = error.strerror or str(error)
            raise NoGateway(f"the gateway of {home} cannot be asked: {SOCKET_NAME}: {reason}") from None
        self._lines = self._socket.makefile("rb")

    def __enter__(self) -> ControlClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the connection."""
        self._lines.close()
        self._socket.close()

    def ask(
        self,
        operation: str,
        arguments: Mapping[str, str] | None = None,
        *,
        on_event: Callable[[Event], None] | None = None,
        seconds: float | None = QUICK_SECONDS,
    ) -> Any:
        """The result of one operation; ``seconds`` bounds each wait for a line, None waits on.

        Raises Refused with the gateway's sentence, NoGateway when it went away or stays silent.
        """
        self._socket.settimeout(seconds)
        try:
            self._socket.sendall(json.dumps({"op": operation, **(arguments or {})}).encode() + b"\n")
            while line := self._lines.readline():
                message: Event = json.loads(line)
                if "error" in message:
                    raise Refused(str(message["error"]))
                if "result" in message:
                    return message["result"]
                if on_event is not None:
                    on_event(message)
        except TimeoutError:
            raise NoGateway(
                f"the gateway of {self._home} has not answered for {seconds:.0f} s; its log says why"
            ) from None
        except (ConnectionError, ValueError) as error:
            raise NoGateway(f"the gateway of {self._home} ended the conversation: {error}") from None
        raise NoGateway(f"the gateway of {self._home} went away before it answered")
