"""Which targets are the same server or the same account under two names, and what that rules out. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from hermes.core.failures import Reason, Verdict

OWN_ACCOUNT = frozenset({
    Reason.AUTH, Reason.AUTH_PERMANENT, Reason.BILLING, Reason.RATE_LIMIT, Reason.MODEL_NOT_FOUND,
    Reason.PROVIDER_POLICY_BLOCKED, Reason.LONG_CONTEXT_TIER, Reason.OAUTH_LONG_CONTEXT_BETA_FORBIDDEN,
})  # fmt: skip
"""Failures that another account may not meet at the same server with the same model."""

WHOLE_ACCOUNT = frozenset({Reason.AUTH, Reason.AUTH_PERMANENT})
"""Failures that the same account meets with every model of the same host."""

WHOLE_HOST = frozenset({"refused", "dns", "certificate"})
"""Details of a failed connection, which is the host's whatever the model."""


@dataclass(frozen=True, slots=True)
class Backend:
    """Who answers for a target: adapter kind, base URL, model. ``keys`` name its credentials without giving them
    away; ``refreshable``: a refused one can be fetched anew."""

    kind: str
    address: str
    model: str
    keys: frozenset[str] = frozenset()
    refreshable: bool = False

    @property
    def host(self) -> str:
        """Host and port in lower case; the address itself where it has none."""
        return urlsplit(self.address).netloc.lower() or self.address


_PORTS = {"http": 80, "https": 443}
_OWN = frozenset({"localhost", "::1"})


def plain_address(url: str) -> str:
    """One spelling for each address: lower case, no default port, no last slash, one name of this machine."""
    parts = urlsplit(url.strip())
    host = (parts.hostname or "").lower()
    try:
        port = parts.port
    except ValueError:
        return url.rstrip("/")
    if not host:
        return url.rstrip("/")
    shown = "127.0.0.1" if host in _OWN else f"[{host}]" if ":" in host else host
    if port is not None and port != _PORTS.get(parts.scheme.lower()):
        shown += f":{port}"
    return f"{parts.scheme.lower()}://{shown}{parts.path.rstrip('/')}"


def same_server(one: Backend, other: Backend) -> bool:
    """The same model at the same address, whatever it is called here."""
    return (one.kind, one.address.rstrip("/"), one.model) == (other.kind, other.address.rstrip("/"), other.model)


def same_account(one: Backend, other: Backend) -> bool:
    """``other`` has no credential at that host which ``one`` has not."""
    return one.host == other.host and other.keys <= one.keys


def pointless(verdict: Verdict, failed: Backend | None, other: Backend | None) -> bool:
    """Whether ``other`` would fail as ``failed`` just did; False where one of them is not known."""
    if failed is None or other is None:
        return False
    if verdict.reason in WHOLE_ACCOUNT and verdict.detail is None and same_account(failed, other):
        return True
    if verdict.reason is Reason.TIMEOUT and verdict.detail in WHOLE_HOST and failed.host == other.host:
        return True
    if not same_server(failed, other):
        return False
    mine = verdict.reason in OWN_ACCOUNT and verdict.detail not in ("upstream", "in_flight")
    return not mine or same_account(failed, other)


def dead_ends(targets: Sequence[tuple[str, Backend | None, int | None]]) -> tuple[str, ...]:
    """(name, backend, window in tokens or None), the primary first → a sentence for each way that leads nowhere."""
    found: list[str] = []
    if len(targets) == 1:
        found.append(
            "there is no fallback: what waiting and repairs cannot cure ends in a sentence, an outage is waited out"
        )
    for place, (name, backend, window) in enumerate(targets):
        if backend is None:
            continue
        if place:
            found += _twins(name, backend, targets[:place])
            first = targets[0][2]
            if window is not None and first is not None and window < first:
                found.append(
                    f"{name} has a smaller window ({window:,} tokens) than {targets[0][0]} ({first:,}): "
                    "a long conversation does not fit it and skips it"
                )
        if len(backend.keys) == 1 and not backend.refreshable:
            found.append(f"{name} has one key: when that is refused or out of credit there is none to turn to")
    return tuple(dict.fromkeys(found))


def _twins(
    name: str, backend: Backend, before: Sequence[tuple[str, Backend | None, int | None]]
) -> list[str]:
    """What ``name`` cannot help against, since a target that is asked before it shares it."""
    for earlier, other, _ in before:
        if other is None:
            continue
        if same_server(other, backend) and same_account(other, backend):
            key = " and uses the same key" if backend.keys else ""
            return [f"fallback {name} is the same backend as {earlier} under another name{key}: it is never asked "
                    "after it"]  # fmt: skip
        if same_server(other, backend):
            return [f"{name} is the same server and model as {earlier} with another key: it helps against a refused "
                    "or used-up key only"]  # fmt: skip
        if same_account(other, backend) and backend.keys:
            return [f"fallback {name} uses the same key as {earlier}: it does not help when that is refused, and "
                    "hardly when its credit or quota is used up"]  # fmt: skip
        if backend.keys and backend.keys <= other.keys:
            return [f"fallback {name} uses the same key as {earlier} at another address: it does not help when that "
                    "is refused"]  # fmt: skip
        if other.host == backend.host:
            return [f"fallback {name} is at the same address as {earlier}: it does not help when that is down"]
    return []
