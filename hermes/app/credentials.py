"""Where the keys of each provider come from, and what of them is kept in ``credentials.json`` (R40).

The file is changed under an flock of its own, always read again before it is written, and replaced whole: what
others keep in it (the page's token) stays. Two processes that share a single-use refresh token thereby spend it
once: the second finds the first one's answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import assert_never

from hermes.agent.credentials import CredentialPool, Secret, Source, StaticKey
from hermes.app.backends import command_name, file_name, grant_name
from hermes.app.parts import Machine
from hermes.config.adapters import (
    CommandCredential,
    EnvCredential,
    FileCredential,
    KeyedProviderConfig,
    OauthCredential,
    ProviderConfig,
)
from hermes.core.clock import Clock
from hermes.core.errors import ForeignHome, ProviderFailure
from hermes.core.failures import FailureFacts, FaultKind, Phase
from hermes.policy.credentials import KeyHealth, KeyState, Strategy
from hermes.providers import oauth
from hermes.providers.network import Network
from hermes.runtime.children import ChildTimeout
from hermes.runtime.offload import Offload, OffloadFull

LOCK_SECONDS = 60.0
"""Longest wait for another process's refresh."""
LOCK_EVERY = 0.05
PAGE_TOKEN = "page_token"
SHORTEST_TOKEN = 32


class CredentialFile:
    """``HERMES_HOME/credentials.json``, shared between processes."""

    def __init__(self, home: Path, offload: Offload) -> None:
        self._path = home / "credentials.json"
        self._lock_path = home / "credentials.lock"
        self._offload = offload

    def read_now(self) -> dict[str, object]:
        """The whole file; empty where there is none or it cannot be read. Blocks; for start-up."""
        try:
            found = json.loads(self._path.read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    async def read(self) -> dict[str, object]:
        return await self._offload.run("files", self.read_now)

    @asynccontextmanager
    async def locked(self) -> AsyncIterator[None]:
        """This process alone changes the file. Raises TimeoutError after LOCK_SECONDS."""
        fd = os.open(self._lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            async with asyncio.timeout(LOCK_SECONDS):
                while not _free(fd):  # noqa: ASYNC110 - another process frees it
                    await asyncio.sleep(LOCK_EVERY)
            yield
        finally:
            os.close(fd)

    async def change(self, section: str, name: str, value: Mapping[str, object]) -> None:
        """Sets one entry; everything else stays. Call it under ``locked``."""
        await self._offload.run("files", self._change, section, name, dict(value))

    async def page_token(self, make: Callable[[], str]) -> str:
        """The page's token, made where there is none (R38). Raises ForeignHome when the file is not ours to change."""
        try:
            async with self.locked():
                return await self._offload.run("files", self._page_token, make)
        except (OSError, ValueError) as error:  # a TimeoutError is an OSError
            raise ForeignHome(
                f"{self._path} cannot be used: {error}; move it away to have a new one made"
            ) from error

    def _page_token(self, make: Callable[[], str]) -> str:
        token = self._whole().get(PAGE_TOKEN)
        if not isinstance(token, str) or len(token) < SHORTEST_TOKEN:
            token = make()
            self._write({**self._whole(), PAGE_TOKEN: token})
        return token

    def _change(self, section: str, name: str, value: dict[str, object]) -> None:
        whole = self._whole()
        part = whole.get(section)
        self._write({**whole, section: {**(part if isinstance(part, dict) else {}), name: value}})

    def _whole(self) -> dict[str, object]:
        try:
            whole = json.loads(self._path.read_text("utf-8"))
        except FileNotFoundError:
            return {}
        if not isinstance(whole, dict):
            raise ValueError("credentials.json is not a JSON object")
        return whole

    def _write(self, whole: dict[str, object]) -> None:
        new = self._path.with_suffix(f".{os.getpid()}.new")
        fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            json.dump(whole, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        new.rename(self._path)


def _free(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def section_of(whole: Mapping[str, object], *path: str) -> dict[str, object]:
    """A nested object of the file; empty for anything else."""
    found: object = whole
    for step in path:
        found = found.get(step) if isinstance(found, Mapping) else None
    return dict(found) if isinstance(found, Mapping) else {}


def _unavailable(provider: str, text: str) -> ProviderFailure:
    return ProviderFailure(
        FailureFacts(FaultKind.HTTP_STATUS, Phase.CONNECT, provider, status=401, message=text)
    )


@contextmanager
def _room(provider: str) -> Iterator[None]:
    """This machine having no room to look a key up is no refusal of the key: it passes, and is retried."""
    try:
        yield
    except OffloadFull as error:
        raise ProviderFailure(
            FailureFacts(
                FaultKind.POOL_TIMEOUT, Phase.CONNECT, provider, message="too much waits for this machine's files"
            )
        ) from error


class FileKey:
    """Read again at each refresh: it changes under us when its owner renews it."""

    refreshable = True

    def __init__(self, provider: str, path: str, offload: Offload) -> None:
        self.ident = file_name(path)
        self._provider, self._path, self._offload = provider, path, offload

    async def fetch(self, stale: str | None) -> Secret:
        try:
            with _room(self._provider):
                text = await self._offload.run("files", _text_of, self._path)
        except (OSError, UnicodeDecodeError) as error:
            raise _unavailable(self._provider, "the credential's file cannot be read") from error
        if not text.strip():
            raise _unavailable(self._provider, "the credential's file is empty")
        return Secret(text.strip())


def _text_of(path: str) -> str:
    return Path(path).expanduser().read_text("utf-8")


class CommandKey:
    """What a program prints; the program is killed with its children when its time is up."""

    refreshable = True

    def __init__(
        self, provider: str, config: CommandCredential, clock: Clock, offload: Offload, environ: Mapping[str, str]
    ) -> None:
        self.ident = command_name(config.command)
        self._provider, self._config, self._clock = provider, config, clock
        self._offload, self._environ = offload, environ

    async def fetch(self, stale: str | None) -> Secret:
        config = self._config
        try:
            ended = await self._offload.run_process(
                list(config.command), timeout=config.timeout, max_output=64 * 1024, env=self._environ
            )
        except ChildTimeout as error:
            raise _unavailable(self._provider, f"the credential's command took over {config.timeout:g} s") from error
        except OSError as error:
            raise _unavailable(self._provider, "the credential's command cannot be started") from error
        value = ended.stdout.decode("utf-8", "replace").strip()
        if ended.code != 0 or not value or ended.truncated or "\n" in value:
            raise _unavailable(self._provider, f"the credential's command gave no key (exit code {ended.code})")
        return Secret(value, self._clock.now() + config.valid_for)


class OauthKey:
    """An access token by refresh token; each refresh is one request of one process."""

    refreshable = True

    def __init__(
        self, provider: str, config: OauthCredential, file: CredentialFile, clock: Clock, network: Network,
    ) -> None:  # fmt: skip
        self.ident = grant_name(config)
        self._first = config.refresh_token.get_secret_value()
        self._provider, self._config, self._file = provider, config, file
        self._clock, self._network = clock, network
        self.on_secret: Callable[[str], object] = len

    async def fetch(self, stale: str | None) -> Secret:
        try:
            with _room(self._provider):
                async with self._file.locked():
                    kept = section_of(await self._file.read(), "oauth", self.ident)
                    return self._good(kept, stale) or await self._refreshed(kept)
        except (TimeoutError, OSError, ValueError) as error:
            raise _unavailable(self._provider, f"credentials.json cannot be used: {type(error).__name__}") from error

    def _good(self, kept: Mapping[str, object], stale: str | None) -> Secret | None:
        """What another process, or an earlier start, already fetched."""
        access, until = kept.get("access_token"), kept.get("expires_at")
        if not isinstance(access, str) or access == stale or not isinstance(until, int | float):
            return None
        if until - self._config.refresh_before <= self._clock.now():
            return None
        return Secret(access, float(until))

    async def _refreshed(self, kept: Mapping[str, object]) -> Secret:
        config, later = self._config, kept.get("refresh_token")
        token = later if isinstance(later, str) and later else self._first
        form = {"grant_type": "refresh_token", "refresh_token": token, "client_id": config.client_id}
        if config.client_secret.get_secret_value():
            form["client_secret"] = config.client_secret.get_secret_value()
        got = await oauth.refresh(self._provider, config.token_url, form, network=self._network)
        renewed, until = got.refresh or token, self._clock.now() + got.expires_in
        self.on_secret(renewed)
        self.on_secret(got.access)
        # Kept before the lock is given back: the old refresh token may be spent, and this is its only heir.
        await self._file.change(
            "oauth", self.ident, {"access_token": got.access, "refresh_token": renewed, "expires_at": until}
        )
        return Secret(got.access, until)


def make_pool(
    name: str, config: ProviderConfig, machine: Machine, file: CredentialFile, environ: Mapping[str, str]
) -> CredentialPool | None:
    """The pool of one provider; None for one that has no key of its own to choose."""
    if not isinstance(config, KeyedProviderConfig):
        return None
    sources = _sources(name, config, machine, file, environ)
    if not sources:
        return None
    renew = config.credential.refresh_before if isinstance(config.credential, OauthCredential) else 0.0

    async def keep(healths: Mapping[str, KeyHealth]) -> None:
        found = {
            ident: {"state": one.state.value, "until": one.until}
            for ident, one in healths.items()
            if one.state is not KeyState.LIVE
        }
        with contextlib.suppress(OSError, ValueError, TimeoutError, OffloadFull):  # a lost rest costs one refused call
            async with file.locked():
                await file.change("keys", name, found)

    kept = section_of(file.read_now(), "keys", name)
    return CredentialPool(
        sources, machine.clock, machine.supervisor.spawn, strategy=Strategy(config.pool_strategy.value),
        kept={ident: one for ident, one in kept.items() if isinstance(one, Mapping)},
        keep=keep, on_secret=machine.on_secret, renew_before=renew,
    )  # fmt: skip


def _sources(
    name: str, config: KeyedProviderConfig, machine: Machine, file: CredentialFile, environ: Mapping[str, str]
) -> list[Source]:
    match config.credential:
        case None:
            keys = dict.fromkeys(key.get_secret_value() for key in config.api_keys or (config.api_key,))
            return [StaticKey(key) for key in keys if key]
        case EnvCredential(name=variable):
            return [StaticKey(environ[variable])] if environ.get(variable) else []
        case FileCredential(path=path):
            return [FileKey(name, path, machine.offload)]
        case CommandCredential() as command:
            return [CommandKey(name, command, machine.clock, machine.offload, environ)]
        case OauthCredential() as grant:
            key = OauthKey(name, grant, file, machine.clock, machine.network)
            key.on_secret = machine.on_secret
            kept = section_of(file.read_now(), "oauth", key.ident)
            for secret in (kept.get("access_token"), kept.get("refresh_token")):
                if isinstance(secret, str):
                    machine.on_secret(secret)
            return [key]
        case other:
            assert_never(other)
