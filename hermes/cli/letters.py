"""``hermes send`` and ``hermes dead-letters``: by the running gateway, else on the store alone (R33)."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import Any

from hermes.cli.codes import OK
from hermes.cli.invocation import Invocation
from hermes.cli.owner import ask
from hermes.cli.screen import clean, console, print_json, table
from hermes.config.environment import Environment


def send(target: str, text: str, invocation: Invocation) -> int:
    """Puts a message into the durable outbox and says so; ``-`` as text reads standard input."""
    said = sys.stdin.read() if text == "-" else text
    found, running = ask(
        Environment.read(), "send", lambda actions: actions.send(target, said), renders=True, target=target, text=said
    )
    if invocation.json:
        print_json({**found, "gateway": running})
        return OK
    when = (
        ""
        if running or found["state"] == "delivered"
        else "; it goes out when a gateway runs here (`hermes run`)"
    )
    parts = "" if found["parts"] == 1 else f" in {found['parts']} parts"
    sys.stdout.write(f"accepted: delivery {found['delivery']}{parts} to {target}{when}\n")
    return OK


def list_letters(invocation: Invocation) -> int:
    """What could not be delivered (``out:N``) or read (``in:N``)."""
    found, _ = ask(Environment.read(), "dead-letters", lambda actions: actions.dead_letters())
    if invocation.json:
        print_json(found)
    elif not found:
        sys.stdout.write("no dead letters\n")
    else:
        _show(found)
    return OK


def retry(name: str, invocation: Invocation) -> int:
    """Tries one once more."""
    found, running = ask(Environment.read(), "dead-letters-retry", lambda actions: actions.retry(name), id=name)
    if invocation.json:
        print_json({**found, "gateway": running})
    else:
        when = "now" if running else "when a gateway runs here (`hermes run`)"
        sys.stdout.write(f"{name} is tried once more {when}\n")
    return OK


def drop(name: str, invocation: Invocation) -> int:
    """Takes one off the list."""
    found, running = ask(Environment.read(), "dead-letters-drop", lambda actions: actions.drop(name), id=name)
    if invocation.json:
        print_json({**found, "gateway": running})
    else:
        sys.stdout.write(f"{name} is off the list; its row stays until its retention ends\n")
    return OK


def _show(letters: list[dict[str, Any]]) -> None:
    lines = table("id", "part", "state", "since", "where", "why")
    for one in letters:
        since = datetime.fromtimestamp(one["at"]).astimezone().strftime("%Y-%m-%d %H:%M")
        where = ":".join(str(part) for part in (one["platform"], one["chat"]) if part)
        why = clean(str(one["reason"] or ""))
        lines.add_row(one["id"], str(one["part"]), str(one["state"]), since, clean(where), why)
    screen = console()
    screen.print(lines)
    screen.print(
        "try again: hermes dead-letters retry ID; take off the list: hermes dead-letters drop ID", style="dim"
    )
