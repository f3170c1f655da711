"""`python -m hermes.simulators telegram|discord|slack|openai|anthropic --port N`: a simulator as a process.

The first line on stdout is JSON with the addresses; SIGTERM and SIGINT end it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys

from hermes.simulators.anthropic import AnthropicSimulator
from hermes.simulators.control import Control
from hermes.simulators.discord import TOKEN as DISCORD_TOKEN
from hermes.simulators.discord import DiscordSimulator
from hermes.simulators.openai import OpenAISimulator
from hermes.simulators.slack import BOT_TOKEN as SLACK_TOKEN
from hermes.simulators.slack import SlackSimulator
from hermes.simulators.telegram import TOKEN, TelegramSimulator

__all__ = ["main"]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="hermes.simulators", description=__doc__)
    parser.add_argument("service", choices=("telegram", "discord", "slack", "openai", "anthropic"))
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument(
        "--control-port", type=int, default=0, help="port of the control API; 0 takes a free one"
    )
    parser.add_argument("--token", default="", help="platforms: the bot's token")
    parser.add_argument("--heartbeat", type=float, default=41.25, help="Discord: seconds between heartbeats")
    parser.add_argument("--request-url", default="", help="Slack: post events there instead of to sockets")
    parser.add_argument("--api-key", default=None, help="models: demand this key")
    parser.add_argument(
        "--context-limit", type=int, default=None, help="models: refuse longer prompts (tokens)"
    )
    parser.add_argument("--latency", type=float, default=0.0, help="models: seconds before an answer")
    return parser.parse_args()


async def _serve(chosen: argparse.Namespace) -> None:
    sim: TelegramSimulator | DiscordSimulator | SlackSimulator | OpenAISimulator | AnthropicSimulator
    if chosen.service == "telegram":
        sim = TelegramSimulator(chosen.token or TOKEN, port=chosen.port)
    elif chosen.service == "discord":
        sim = DiscordSimulator(
            chosen.token or DISCORD_TOKEN, port=chosen.port, heartbeat_interval=chosen.heartbeat
        )
    elif chosen.service == "slack":
        sim = SlackSimulator(chosen.token or SLACK_TOKEN, port=chosen.port, request_url=chosen.request_url)
    else:
        kind = OpenAISimulator if chosen.service == "openai" else AnthropicSimulator
        sim = kind(
            port=chosen.port,
            api_key=chosen.api_key,
            context_limit=chosen.context_limit,
            latency=chosen.latency,
        )
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with sim, Control(sim, port=chosen.control_port) as control:
        where = {
            "service": chosen.service,
            "base_url": sim.base_url,
            "control": control.url,
            "port": sim.port,
        }
        if isinstance(sim, TelegramSimulator):
            where |= {"base_file_url": sim.base_file_url, "token": sim.token}
        elif isinstance(sim, DiscordSimulator | SlackSimulator):
            where |= sim.where()
        sys.stdout.write(json.dumps(where) + "\n")
        sys.stdout.flush()
        await stop.wait()


def main() -> None:
    """Serves until a signal."""
    asyncio.run(_serve(_arguments()))


if __name__ == "__main__":
    main()
