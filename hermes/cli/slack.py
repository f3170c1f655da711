"""``hermes slack manifest``: the app manifest to paste at api.slack.com."""

from __future__ import annotations

import json
import sys

from hermes.cli.codes import OK, USAGE
from hermes.platforms.slack.config import SlackMode
from hermes.platforms.slack.manifest import manifest


def print_manifest(address: str, name: str) -> int:
    """JSON, for Socket Mode, or for HTTP where an address is given. The exit code."""
    if address and not address.startswith("https://"):
        sys.stderr.write("hermes: --address must begin with https://, for Slack calls no other\n")
        return USAGE
    mode = SlackMode.HTTP if address else SlackMode.SOCKET
    text = json.dumps(manifest(mode, name=name, address=address), indent=2, ensure_ascii=False)
    sys.stdout.write(f"{text}\n")
    return OK
