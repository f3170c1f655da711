"""What ``--help`` and ``--help-all`` print: fixed text, so that they cost nothing (FIRST_HOUR 3)."""

from __future__ import annotations

import sys

from hermes import __version__
from hermes.cli.codes import OK
from hermes.cli.invocation import Invocation

EVERYDAY = """\
Hermes: a chat-agent gateway that loses no message and answers none twice.

Usage: hermes [--debug] [--json] COMMAND [ARGUMENTS]

Every day
  run               start the gateway; with nothing configured it serves a page to try it
  chat [TEXT]       ask it something; without TEXT, a conversation
  status            what works, what does not, and why; --page-url prints the page's address
  check             whether `run` would accept the configuration; all problems at once
  send TARGET TEXT  send a message, e.g. hermes send telegram:123456 "hello"
  dead-letters      what could not be delivered or read: list, retry ID, drop ID
  explain error     what a provider's or platform's error means and what follows
  explain policy    the bounds of every retry, and the cure of every failure
  explain config    the configuration in force, and where each value came from
  version           the version

Configuration: HERMES_HOME (~/.hermes) with config.yaml and .env.
Exit codes: 0 ok, 1 failure, 2 usage, 75 please restart, 78 refused.
hermes --help-all shows the rest; hermes COMMAND --help one command.
"""

ALL = (
    EVERYDAY.rpartition("hermes --help-all")[0]
    + """
The rest
  usage             calls, tokens and money of everybody, by model and by day
  pairing           who waits to be let in: list, approve CODE, revoke PLATFORM:USER
  learned           what repairs taught about models: list, clear [PROVIDER/MODEL]
  slack manifest    the app manifest to paste where a Slack app is created
  health            for containers and monitors: exit code 0 when ready, else 1 and the reasons

Options, anywhere before `--`
  --debug           tracebacks, and log lines of the level DEBUG
  --json            for programs, where a command has something to say to them
  --version         as `version`

hermes COMMAND --help explains one command.
"""
)


def print_version(invocation: Invocation) -> int:
    """``hermes 1.2.3``, or an object for programs."""
    sys.stdout.write(f'{{"version": "{__version__}"}}\n' if invocation.json else f"hermes {__version__}\n")
    return OK


def print_help(*, everything: bool) -> int:
    """The everyday commands, or all."""
    sys.stdout.write(ALL if everything else EVERYDAY)
    return OK
