"""How an adapter reaches its server. Imports no SDK: ``app`` fills it in before one is loaded."""

from __future__ import annotations

from dataclasses import dataclass

from aiohttp.abc import AbstractResolver


@dataclass(frozen=True, slots=True)
class Network:
    """``resolver`` does the DNS look-ups (R24); without one aiohttp uses asyncio's default executor.
    ``proxy`` is the URL of an HTTP proxy; the environment is not asked for one."""

    resolver: AbstractResolver | None = None
    proxy: str | None = None
