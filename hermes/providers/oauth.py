"""The refresh-token grant of OAuth 2 (RFC 6749 §6), as portals with single-use refresh tokens use it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

import aiohttp

from hermes.core.errors import ProviderFailure
from hermes.core.failures import FailureFacts, FaultKind, Phase
from hermes.providers.network import Network

MAX_ANSWER = 256 * 1024
DEFAULT_LIFE = 3600.0
"""Seconds that a token lives whose answer does not say."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """One answer of the token endpoint; ``refresh`` is empty when the old one stays good."""

    access: str = field(repr=False)
    refresh: str = field(repr=False)
    expires_in: float


async def refresh(
    provider: str,
    url: str,
    form: Mapping[str, str],
    *,
    network: Network,
    seconds: float = 30.0,
) -> Tokens:
    """One request, no retry: a single-use token may be spent by it. Raises ProviderFailure; its facts hold the
    server's error code and no token."""
    try:
        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(resolver=network.resolver, force_close=True),
            timeout=aiohttp.ClientTimeout(total=seconds),
            trust_env=False,
        ) as session, session.post(
            url, data=dict(form), headers={"Accept": "application/json"}, proxy=network.proxy, allow_redirects=False
        ) as response:
            status = response.status
            raw = await response.content.read(MAX_ANSWER)
    except TimeoutError as error:
        raise _failed(provider, FaultKind.FIRST_BYTE_TIMEOUT, "the token endpoint did not answer") from error
    except (aiohttp.ClientError, OSError) as error:
        raise _failed(provider, FaultKind.REFUSED, "the token endpoint cannot be reached") from error
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        body = None
    answer = body if isinstance(body, dict) else {}
    if status != 200:
        raise _refused(provider, status, answer)
    access = answer.get("access_token")
    if not isinstance(access, str) or not access:
        raise _failed(provider, FaultKind.BAD_JSON, "the token endpoint's answer holds no access_token")
    renewed, life = answer.get("refresh_token"), answer.get("expires_in")
    lives = float(life) if isinstance(life, int | float) and 0 < life < 1e9 else DEFAULT_LIFE
    return Tokens(access, renewed if isinstance(renewed, str) else "", lives)


def _refused(provider: str, status: int, answer: Mapping[str, object]) -> ProviderFailure:
    """Only the error's code is passed on: descriptions may echo the token."""
    error = answer.get("error")
    code = error.get("code") if isinstance(error, Mapping) else error
    word = code[:60] if isinstance(code, str) and code.replace("_", "").isalnum() else ""
    return ProviderFailure(
        FailureFacts(
            FaultKind.HTTP_STATUS, Phase.RESPONSE, provider, status=401 if status in (400, 401, 403) else status,
            code=word or None, message=f"the token endpoint refused the refresh token ({word or status})",
        )
    )  # fmt: skip


def _failed(provider: str, kind: FaultKind, message: str) -> ProviderFailure:
    phase = Phase.RESPONSE if kind is FaultKind.BAD_JSON else Phase.CONNECT
    return ProviderFailure(FailureFacts(kind, phase, provider, message=message))
