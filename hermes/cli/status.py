"""``hermes status``: what the running gateway knows of itself. No green mark without a proof (promise 8)."""

from __future__ import annotations

import sys
from typing import Any

from hermes.cli.codes import FAILED, OK
from hermes.cli.control_client import ControlClient
from hermes.cli.invocation import Invocation
from hermes.cli.screen import STYLES, WORDS, clean, console, print_json, table
from hermes.config.environment import Environment


def status(invocation: Invocation) -> int:
    """Prints every part with its light; the code is 1 when a part is bad or the gateway is not ready."""
    with ControlClient(Environment.read().home) as gateway:
        found: dict[str, Any] = gateway.ask("status")
    if invocation.json:
        print_json(found)
    else:
        _show(found)
    lights = {item["light"] for item in found["items"]}
    return OK if found["ready"] and "bad" not in lights else FAILED


def page_url(invocation: Invocation) -> int:
    """Prints the page's address with its token."""
    with ControlClient(Environment.read().home) as gateway:
        url = str(gateway.ask("page-url"))
    if invocation.json:
        print_json({"page_url": url})
    else:
        sys.stdout.write(f"{url}\n")
    return OK


def _show(found: dict[str, Any]) -> None:
    from rich.text import Text

    screen = console()
    ready = found["ready"]
    head = Text.assemble(
        f"hermes {found['version']} in {found['home']}: ",
        ("ready", STYLES["ok"]) if ready else ("not ready", STYLES["bad"]),
    )
    screen.print(head)
    for reason in found["not_ready"]:
        screen.print(Text(f"  {reason}", STYLES["bad"]))
    lines = table("", "state", "")
    lines.show_header = False
    for item in found["items"]:
        light = item["light"]
        state = Text(WORDS.get(light, light), STYLES.get(light, ""))
        lines.add_row(clean(item["name"]), state, clean(item["sentence"]))
    screen.print(lines)
