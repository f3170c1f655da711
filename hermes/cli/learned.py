"""``hermes learned``: what repairs taught about models (R16), and forgetting it."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import Any

from hermes.cli.codes import OK
from hermes.cli.invocation import Invocation
from hermes.cli.owner import ask
from hermes.cli.screen import clean, console, print_json, table
from hermes.config.environment import Environment

SAYS = {
    "max_output": "answers of at most {value} tokens",
    "plain_schemas": "takes tool schemas only without patterns and formats",
    "context_window": "a window of {value} tokens",
    "vocabulary": "how many tokens its texts take",
    "image_limits": "pictures no larger than {value}",
    "no_images": "takes no pictures",
    "tool_images": "takes no pictures in tool results",
    "no_long_context_beta": "its account may not use the long-context beta",
}
LONGEST = 60


def known(environment: Environment) -> list[dict[str, Any]]:
    """Each fact as it is kept, and what it ``says`` in words; a home that does not exist knows nothing.

    Raises NoGateway, Refused, ForeignHome, StoreUnavailable.
    """
    if not (environment.home / "state.db").exists():
        return []
    found, _ = ask(environment, "learned", lambda actions: actions.learned_facts())
    return [{**fact, "says": _says(fact)} for fact in found]


def list_learned(invocation: Invocation) -> int:
    """What is known beyond the configuration, and until when."""
    found = known(Environment.read())
    if invocation.json:
        print_json(found)
    elif not found:
        sys.stdout.write("nothing was learned\n")
    else:
        lines = table("model", "learned", "until", "what")
        for fact in found:
            at, until = _day(fact["learned_at"]), _day(fact["expires_at"])
            lines.add_row(clean(fact["target"]), at, until, clean(fact["says"]))
        screen = console()
        screen.print(lines)
        screen.print("forget one model's: hermes learned clear PROVIDER/MODEL; all: hermes learned clear", style="dim")
    return OK


def clear(target: str, invocation: Invocation) -> int:
    """Forgets what was learned about one ``PROVIDER/MODEL``, or all: it is found out anew."""
    environment = Environment.read()
    done: dict[str, Any] = {"target": target, "forgotten": 0}
    if target or (environment.home / "state.db").exists():
        done, _ = ask(environment, "learned-clear", lambda actions: actions.forget(target), target=target)
    if invocation.json:
        print_json(done)
    else:
        about = f" about {clean(target)}" if target else ""
        sys.stdout.write(f"forgotten: {done['forgotten']}{about}\n")
    return OK


def _says(fact: dict[str, Any]) -> str:
    value = fact["value"]
    shown = value if len(value) <= LONGEST else f"{value[:LONGEST]}…"
    return SAYS.get(fact["key"], "{key}: {value}").format(key=fact["key"], value=shown)


def _day(at: float) -> str:
    return datetime.fromtimestamp(at).astimezone().strftime("%Y-%m-%d %H:%M")
