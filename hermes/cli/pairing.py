"""``hermes pairing``: who waits to be let in, who was, and changing it; by the gateway, else on the store alone."""

from __future__ import annotations

import sys
from datetime import datetime

from hermes.cli.codes import OK
from hermes.cli.invocation import Invocation
from hermes.cli.owner import ask
from hermes.cli.screen import clean, console, print_json, table
from hermes.config.environment import Environment


def list_people(invocation: Invocation) -> int:
    """Both lists."""
    found, _ = ask(Environment.read(), "pairing", lambda actions: actions.people.overview())
    if invocation.json:
        print_json(found)
        return OK
    if not found["waiting"] and not found["paired"]:
        sys.stdout.write("nobody waits and nobody was paired\n")
        return OK
    lines = table("who", "name", "state", "since")
    for one in found["waiting"]:
        lines.add_row(clean(f"{one['platform']}:{one['user']}"), clean(one["name"]), "waits", _at(one["since"]))
    for one in found["paired"]:
        who = clean(f"{one['platform']}:{one['user']}")
        lines.add_row(who, clean(one["name"]), clean(f"{one['role']}, by {one['by']}"), _at(one["at"]))
    screen = console()
    screen.print(lines)
    screen.print("let in: hermes pairing approve CODE; take back: hermes pairing revoke PLATFORM:USER", style="dim")
    return OK


def approve(code: str, role: str, invocation: Invocation) -> int:
    """Lets somebody in; they are told."""
    found, running = ask(
        Environment.read(), "pairing-approve", lambda actions: actions.people.approve_for_cli(code, role),
        renders=True, code=code, role=role,
    )  # fmt: skip
    if invocation.json:
        print_json({**found, "gateway": running})
        return OK
    when = "" if running else " from the next start on"
    sys.stdout.write(clean(f"{found['name'] or found['user']} ({found['platform']}) may talk{when}") + "\n")
    return OK


def revoke(who: str, invocation: Invocation) -> int:
    """Takes it back."""
    found, _ = ask(Environment.read(), "pairing-revoke", lambda actions: actions.people.revoke_for_cli(who), who=who)
    if invocation.json:
        print_json(found)
    else:
        sys.stdout.write(clean(f"{found['platform']}:{found['user']} is a stranger again") + "\n")
    return OK


def _at(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M")
