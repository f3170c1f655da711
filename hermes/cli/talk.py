"""``hermes chat``: through the running gateway, else with one that lives as long as the chat (R33)."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable

from hermes.cli.codes import FAILED, OK, USAGE
from hermes.cli.control_client import ControlClient, NoGateway, not_listening
from hermes.cli.dialogue import Dialogue
from hermes.cli.invocation import Invocation
from hermes.cli.screen import print_json
from hermes.cli.shows import Live, Quiet
from hermes.cli.terminal import Terminal
from hermes.config.environment import Environment
from hermes.core.errors import HomeInUse

LEAVE = frozenset({"/quit", "/exit"})


def chat(text: str | None, invocation: Invocation) -> int:
    """One answer to ``text`` (``-`` or a pipe: standard input) on standard output; without, a conversation."""
    if text == "-" or (text is None and not sys.stdin.isatty()):
        text = sys.stdin.read()
    if text is not None and not text.strip():
        sys.stderr.write("hermes: nothing to say: give TEXT, or run it in a terminal for a conversation\n")
        return USAGE
    environment = Environment.read()
    try:
        ControlClient(environment.home).close()
    except NoGateway as nobody:
        if not nobody.absent:
            raise
        return _alone(environment, text, invocation)
    return asyncio.run(_talk(environment, text, invocation))


async def _talk(environment: Environment, text: str | None, invocation: Invocation) -> int:
    dialogue = Dialogue(environment.home)
    if text is None:
        return await _conversation(dialogue)
    show = Quiet()
    answer = await dialogue.ask(text, show)
    if invocation.json:
        print_json({"text": answer, "notices": show.notices})
    else:
        sys.stdout.write(f"{answer}\n")
    return OK if answer else FAILED


async def _conversation(dialogue: Dialogue) -> int:
    """Until Ctrl-D, /quit, or Ctrl-C at the prompt. Ctrl-C during an answer stops it, a second one leaves."""
    show = Live()
    with Terminal(on_interrupt=dialogue.interrupt) as terminal:
        show.note("Talk; /help lists commands, Ctrl-C stops an answer, Ctrl-D leaves.")
        while (line := await terminal.line("> ")) is not None and line.strip() not in LEAVE:
            if line.strip():
                show.end(await dialogue.ask(line, show))
    return OK


def _alone(environment: Environment, text: str | None, invocation: Invocation) -> int:
    from hermes.app import offline
    from hermes.app.loading import load

    loaded = load(environment, None)

    async def talk(on_secret: Callable[[str], None]) -> int:
        async with offline.talking(loaded, environment, on_secret):
            return await _talk(environment, text, invocation)

    try:
        with offline.held(environment):
            sink, redactor = offline.log_to_file(loaded, environment, debug=invocation.debug)
            try:
                return asyncio.run(talk(redactor.register))
            finally:
                sink.close(1.0)
    except HomeInUse:
        raise not_listening(environment.home) from None
