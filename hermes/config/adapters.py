"""Bases of the adapters' own sections: each adapter extends one in its ``config.py``, without an SDK."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import Field

from hermes.config.fields import (
    NO_SECRET,
    BaseUrl,
    ChatId,
    Complaint,
    Duration,
    Flag,
    Identifiers,
    Number,
    Reload,
    Secret,
    Section,
    Size,
    Text,
    Texts,
    Whole,
    key,
)


class PlatformConfig(Section):
    """What every platform has."""

    enabled: Flag = key(False, "Whether this platform is connected.")


class ChatPlatformConfig(PlatformConfig):
    """A platform on which strangers can write to the bot."""

    allowed_users: Identifiers = key((), "Ids of the people who may talk to the bot.", reload=Reload.LIVE)
    allow_all_users: Flag = key(
        False, "Anybody may talk to the bot, and spend the owner's money.", reload=Reload.LIVE
    )
    owners: Identifiers = key(
        (), "Ids of those who run the bot; none: the only one in allowed_users, if it is one.", reload=Reload.LIVE
    )
    guests: Identifiers = key(
        (), "Ids of people who may talk, with the tools of tools.guest_tools only.", reload=Reload.LIVE
    )
    allowed_roles: Identifiers = key(
        (), "Ids of the platform's roles whose bearers may talk (Discord).", reload=Reload.LIVE
    )
    allowed_chats: Identifiers = key((), "Ids of groups whose members may talk, there only.", reload=Reload.LIVE)
    require_mention: Flag = key(
        True, "In groups only what names the bot, replies to it or is a command is heard.", reload=Reload.LIVE
    )
    free_chats: Identifiers = key((), "Ids of groups in which every message is heard.", reload=Reload.LIVE)
    pairing: Flag = key(
        False, "Strangers who write privately are shown a code by which an owner lets them in.", reload=Reload.LIVE
    )
    home_channel: ChatId = key(
        "", "Chat id that gets notices and scheduled output; empty: set by /sethome.", reload=Reload.LIVE
    )

    user_id: ClassVar[re.Pattern[str]]
    """What an id of a person looks like on this platform."""
    user_id_says: ClassVar[str]
    """The same in words."""

    def complaints(self) -> tuple[Complaint, ...]:
        lists = {"allowed_users": self.allowed_users, "owners": self.owners, "guests": self.guests}
        return tuple(
            Complaint(
                f"{name}.{at}",
                "a text that can be nobody's id",
                self.user_id_says,
                "ids, not names; the log and the page show the id of whoever writes to the bot",
            )
            for name, users in lists.items()
            for at, one in enumerate(users)
            if not self.user_id.match(one)
        )


class ModelSpec(Section):
    """What is known about one model. Prices are US dollars a million tokens (docs/budgets.md)."""

    context_window: Whole = key(128_000, "Tokens of prompt and answer together.", gt=0)
    max_output: Whole = key(8_192, "Most tokens of one answer.", gt=0)
    price_input: Number = key(
        0.0, "US dollars a million prompt tokens; 0: the shipped list's price, if it has one.", ge=0
    )
    price_output: Number = key(
        0.0, "US dollars a million answer tokens; 0: the shipped list's price, if it has one.", ge=0
    )
    price_cached: Number = key(
        0.0, "Prompt tokens read from the provider's cache; 0: as price_input.", ge=0
    )
    price_cache_write: Number = key(
        0.0, "Prompt tokens put into the provider's cache; 0: as price_input.", ge=0
    )
    images: Flag = key(False, "Whether the model takes images; not set: whether its name says so.")
    tools: Flag = key(True, "Whether the model is offered tools; false for models that cannot call any.")


class PoolStrategy(StrEnum):
    FILL_FIRST = "fill_first"
    ROUND_ROBIN = "round_robin"
    LEAST_USED = "least_used"


class EnvCredential(Section):
    """A variable, looked at again at each reload."""

    kind: Literal["env"] = key("env", "Where the credential comes from.")
    name: Text = key("", "Name of the variable.")


class FileCredential(Section):
    """A file, read again when it changes."""

    kind: Literal["file"] = key("file", "Where the credential comes from.")
    path: Text = key("", "The file that holds the secret as its only line.")


class CommandCredential(Section):
    """A program that prints the secret."""

    kind: Literal["command"] = key("command", "Where the credential comes from.")
    command: Texts = key((), "Program and arguments; no shell.")
    timeout: Duration = key(10.0, "Longest time it may take.", gt=0)
    valid_for: Duration = key(3600.0, "How long its answer is used.", gt=0)


class OauthCredential(Section):
    """An OAuth 2 refresh token; refreshed once for all callers."""

    kind: Literal["oauth_refresh"] = key("oauth_refresh", "Where the credential comes from.")
    token_url: BaseUrl = key("", "Where a new access token is asked for.")
    client_id: Text = key("", "Name of this client at the server.")
    client_secret: Secret = key(NO_SECRET, "Secret of this client, if it has one.")
    refresh_token: Secret = key(
        NO_SECRET, "The first refresh token; later ones are kept in credentials.json."
    )
    refresh_before: Duration = key(300.0, "How long before its end a token is renewed.", ge=0)


Credential: TypeAlias = Annotated[
    EnvCredential | FileCredential | CommandCredential | OauthCredential, Field(discriminator="kind")
]

_NEEDED = {"env": "name", "file": "path", "command": "command", "oauth_refresh": "refresh_token"}


class ProviderConfig(Section):
    """What every provider has."""

    enabled: Flag = key(True, "Whether this provider may be used.")
    kind: Text = key("", "Which adapter speaks to it.")
    connect_timeout: Duration = key(15.0, "Longest wait for a connection.", gt=0)
    first_byte_timeout: Duration = key(
        120.0,
        "Longest wait for the first byte of an answer; not set: 600 for reasoning models, 900 for local servers.",
        gt=0,
    )
    stall_timeout: Duration = key(
        60.0, "Longest silence within an answer; not set: 300 for reasoning models and local servers.", gt=0
    )
    total_timeout: Duration = key(
        900.0,
        "Longest time for one answer; not set: 1800 for reasoning models, 3600 for local servers.",
        gt=0,
    )
    max_concurrency: Whole = key(
        256, "Most calls at once; the governor goes below it on 429 and 529.", reload=Reload.LIVE, gt=0
    )
    requests_per_minute: Whole = key(
        0, "Most calls a minute; 0: only what the server's headers tell.", reload=Reload.LIVE, ge=0
    )
    tokens_per_minute: Whole = key(
        0, "Most tokens a minute; 0: only what the server's headers tell.", reload=Reload.LIVE, ge=0
    )
    models: Mapping[Text, ModelSpec] = key(
        dict, "What is known about its models, by name.", reload=Reload.LIVE
    )


class KeyedProviderConfig(ProviderConfig):
    """A provider that wants a key: one, a pool of them, or a credential that is fetched."""

    api_key: Secret = key(NO_SECRET, "The key; empty for a server that wants none.")
    api_key_file: Text = key("", "A file that holds the key instead.")
    api_keys: tuple[Secret, ...] = key((), "A pool of keys instead of one.")
    credential: Credential | None = key(None, "A credential that is fetched instead of a key.")
    pool_strategy: PoolStrategy = key(PoolStrategy.FILL_FIRST, "Which key of the pool is taken.")
    max_response_bytes: Size = key(32 * 2**20, "Most bytes of one answer.", gt=0)

    def complaints(self) -> tuple[Complaint, ...]:
        given = [
            name
            for name, there in (
                ("api_key", self.api_key.get_secret_value() != ""),
                ("api_keys", bool(self.api_keys)),
                ("credential", self.credential is not None),
            )
            if there
        ]
        found = list(super().complaints())
        if len(given) > 1:
            found.append(
                Complaint(
                    given[1],
                    f"{' and '.join(given)} are both given",
                    "one of them",
                    f"remove {given[1]} or {given[0]}",
                )
            )
        if any(not one.get_secret_value() for one in self.api_keys):
            found.append(
                Complaint("api_keys", "an empty key in the pool", "keys", "remove it, or set its variable")
            )
        if self.credential is not None and not _filled(self.credential, _NEEDED[self.credential.kind]):
            name = _NEEDED[self.credential.kind]
            found.append(Complaint(f"credential.{name}", "missing", "a value", f"add {name}: to credential"))
        return tuple(found)

    def has_key(self) -> bool:
        """True when anything is configured to authenticate with."""
        return bool(self.api_key.get_secret_value() or self.api_keys or self.credential)


def _filled(credential: Section, name: str) -> bool:
    value = getattr(credential, name)
    return bool(value.get_secret_value() if hasattr(value, "get_secret_value") else value)
