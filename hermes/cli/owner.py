"""The owner's actions: by the running gateway, else on the store alone (R33)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from hermes.cli.control_client import ControlClient, NoGateway, not_listening
from hermes.config.environment import Environment
from hermes.core.errors import HomeInUse

if TYPE_CHECKING:
    from hermes.gateway.actions import Actions


def ask(
    environment: Environment,
    operation: str,
    alone: Callable[[Actions], Awaitable[Any]],
    *,
    renders: bool = False,
    **arguments: str,
) -> tuple[Any, bool]:
    """The result, and whether a running gateway gave it. ``renders``: it needs the platforms' adapters.

    Raises Refused, NoGateway, and what ``app.offline.act`` raises.
    """
    try:
        with ControlClient(environment.home) as gateway:
            return gateway.ask(operation, arguments), True
    except NoGateway as nobody:
        if not nobody.absent:
            raise
    from hermes.app import offline

    try:
        return offline.act(environment, alone, renders=renders), False
    except HomeInUse:
        raise not_listening(environment.home) from None
