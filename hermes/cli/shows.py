"""What a person sees of a turn under way. None of it is the answer: that is the stored text."""

from __future__ import annotations

import sys
from typing import Protocol

from hermes.cli.control_client import Event
from hermes.cli.screen import clean, console


class Show(Protocol):
    """Takes the live events of one answer."""

    def event(self, event: Event) -> None:
        """One event of the control socket: ``event`` (its kind), ``text``, ``detail``."""


class Quiet:
    """Retries and fallbacks on standard error, dim; nothing on standard output."""

    def __init__(self) -> None:
        self.notices: list[str] = []

    def event(self, event: Event) -> None:
        if event["event"] == "notice":
            self.notices.append(event["text"])
            console(errors=True).print(clean(event["text"]), style="dim")


class Live:
    """The answer as it comes; beneath it, dim, what else happens."""

    def __init__(self) -> None:
        self._streamed = ""
        self._screen = console()

    def note(self, text: str) -> None:
        """A dim line of its own."""
        self._break()
        self._screen.print(clean(text), style="dim")

    def event(self, event: Event) -> None:
        match event["event"]:
            case "text":
                self._streamed += event["text"]
                sys.stdout.write(clean(event["text"]))
                sys.stdout.flush()
            case "restarted" if self._streamed:
                self.note("(broken off; the answer begins anew)")
            case "notice":
                self.note(event["text"])
            case "tool":
                self.note(f"({event['text']}: {event['detail']})")

    def end(self, answer: str) -> None:
        """The stored answer: shown unless it has just been streamed."""
        if self._streamed.strip() == answer.strip():
            self._break()
        else:
            self._break()
            sys.stdout.write(f"{clean(answer)}\n")
        sys.stdout.flush()

    def _break(self) -> None:
        """Ends the line of streamed text, if one is open."""
        if self._streamed and not self._streamed.endswith("\n"):
            sys.stdout.write("\n")
        self._streamed = ""
