"""The kinds of value a key can have, each with the words an error uses for what is allowed."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import ip_address
from typing import Annotated, Any
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr
from pydantic_core import PydanticCustomError

from hermes.config.expand import FromVariable


class Reload(StrEnum):
    """What a changed key needs (R42)."""

    LIVE = "live"
    """Taken over by the next read."""
    LINK = "link"
    """The platform, provider or MCP server it belongs to restarts."""
    PROCESS = "process"
    """Reported as "needs restart"."""


class Complaint(tuple[str, str, str, str]):
    """(key, found, allowed, cure): something wrong across keys. ``found`` never quotes a value."""

    __slots__ = ()

    def __new__(cls, name: str, found: str, allowed: str, cure: str) -> Complaint:
        return super().__new__(cls, (name, found, allowed, cure))


class Section(BaseModel):
    """Base of all sections: frozen, unknown keys refused, numbers finite."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        validate_default=False,
        hide_input_in_errors=True,
        protected_namespaces=(),
    )

    def complaints(self) -> tuple[Complaint, ...]:
        """Why this section cannot be used although each key is fine. Not asked of disabled sections."""
        return ()


@dataclass(frozen=True, slots=True)
class Means:
    """Metadata of a kind: what an error calls the allowed values, and the usual cure."""

    allowed: str
    cure: str = ""


def key(
    default: Any,
    description: str,
    *,
    reload: Reload | None = None,
    ge: float | None = None,
    gt: float | None = None,
    le: float | None = None,
    lt: float | None = None,
) -> Any:
    """A key of a section: its default, what it does, how a change is taken over, and its range.

    Without ``reload`` it is as the section that holds it; at the top that means live.
    """
    bounds: dict[str, Any] = {
        name: value for name, value in (("ge", ge), ("gt", gt), ("le", le), ("lt", lt)) if value is not None
    }
    extra: dict[str, Any] = {} if reload is None else {"reload": reload.value}
    if isinstance(default, type):
        return Field(default_factory=default, description=description, json_schema_extra=extra, **bounds)
    return Field(default=default, description=description, json_schema_extra=extra, **bounds)


def wrong(allowed: str = "", cure: str = "", found: str = "") -> PydanticCustomError:
    """The error a validator raises. Empty parts are filled in from the field and the file. ``found`` must not
    quote the value."""
    return PydanticCustomError("hermes", "{found}", {"found": found, "allowed": allowed, "cure": cure})


def _number(parse: Callable[[str], float], also: tuple[type, ...]) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        if isinstance(value, FromVariable):
            try:
                return parse(value.strip())
            except ValueError:
                raise wrong() from None
        if isinstance(value, bool) or not isinstance(value, also):
            raise wrong()
        return value

    return check


def _flag(value: Any) -> bool:
    if isinstance(value, FromVariable):
        word = value.strip().lower()
        if word in {"true", "yes", "on", "1"}:
            return True
        if word in {"false", "no", "off", "0"}:
            return False
    if isinstance(value, bool):
        return value
    raise wrong()


_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "ms": 0.001, "w": 604800.0}
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(ms|s|m|h|d|w)?\Z")


def parse_duration(text: str) -> float:
    """Seconds of ``90``, ``30s``, ``5m``, ``24h``, ``365d``, ``2w``, ``200ms``. Raises ValueError."""
    match = _DURATION.match(text.strip().lower())
    if match is None or len(text) > 32:
        raise ValueError("not a duration")
    return float(match.group(1)) * _UNITS[match.group(2) or "s"]


def _duration(value: Any) -> Any:
    if isinstance(value, bool):
        raise wrong()
    if isinstance(value, str):
        try:
            return parse_duration(value)
        except ValueError:
            raise wrong() from None
    return value


_SIZES = {"": 1, "b": 1, "kib": 2**10, "mib": 2**20, "gib": 2**30, "kb": 10**3, "mb": 10**6, "gb": 10**9}
_SIZE = re.compile(r"([0-9]{1,15})\s*([a-z]*)\Z")


def _size(value: Any) -> Any:
    if isinstance(value, bool | float):
        raise wrong()
    if isinstance(value, str):
        match = _SIZE.match(value.strip().lower())
        if match is None or match.group(2) not in _SIZES:
            raise wrong()
        return int(match.group(1)) * _SIZES[match.group(2)]
    return value


def _identifier(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise wrong()
    text = str(value).strip()
    if not text or len(text) > 200 or any(c.isspace() for c in text):
        raise wrong()
    return text


def _listed(value: Any) -> Any:
    """A list, or text with commas (what a variable holds)."""
    if isinstance(value, str):
        return [part for part in (piece.strip() for piece in value.split(",")) if part]
    if isinstance(value, int) and not isinstance(value, bool):
        return [value]
    return value


def split_host_port(text: str) -> tuple[str, int]:
    """Host (without brackets) and port of ``HOST:PORT`` or ``[V6]:PORT``. Raises ValueError."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or len(port) > 5 or not 1 <= int(port) <= 65535:
        raise ValueError("no port in 1-65535")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
        if ":" not in host:
            raise ValueError("brackets are for IPv6")
    elif ":" in host:
        raise ValueError("an IPv6 address needs brackets")
    if not host or any(c.isspace() or c in "/@[]" for c in host):
        raise ValueError("no host")
    return host, int(port)


def is_loopback(bind: str) -> bool:
    """True when ``HOST:PORT`` can be reached from this machine only. A name other than localhost counts as open."""
    host = split_host_port(bind)[0]
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


NAME_RULE = "1 to 64 letters, digits, and . _ - between them"
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9])?\Z")


def is_name(text: str) -> bool:
    """True for a name of the owner's own: of a provider or an MCP server."""
    return _NAME.match(text) is not None


def _named(value: Any) -> Any:
    if not isinstance(value, str) or not is_name(value):
        raise wrong(NAME_RULE, "choose another name", "a name that cannot be used")
    return value


def _bind(value: str) -> str:
    try:
        split_host_port(value)
    except ValueError:
        raise wrong() from None
    return value


def url_problem(text: str, schemes: tuple[str, ...]) -> str:
    """What a base URL lacks; empty when it is fine. The sentence never quotes the URL."""
    if any(c.isspace() or not c.isprintable() for c in text):
        return "blanks in an address"
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        return "an address whose host or port cannot be read"
    if parts.scheme not in schemes or not host:
        return "an address without scheme and host"
    if port == 0:
        return "port 0"
    if parts.username is not None or parts.password is not None:
        return "an address with a user or password in it"
    return "an address with ? or #" if parts.query or parts.fragment else ""


def _url(*schemes: str, empty: bool) -> Callable[[str], str]:
    def check(value: str) -> str:
        text = value.strip()
        if not text and empty:
            return ""
        if problem := url_problem(text, schemes):
            raise wrong(found="" if problem == "an address without scheme and host" else problem)
        return text.rstrip("/")

    return check


def _zone(value: str) -> str:
    if value:
        try:
            ZoneInfo(value)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise wrong() from None
    return value


def _text(value: Any) -> Any:
    if not isinstance(value, str):
        raise wrong()
    if "\x00" in value:
        raise wrong(found="a NUL character")
    return value


_PLACEHOLDER = re.compile(
    r"<.*>|\.{3,}|x{3,}|\*+|(change|replace|fill)[-_ ]?me.*|todo|fixme|placeholder"
    r"|your[-_ ].*|(insert|enter|put|paste|replace)[-_ ].*[-_ ](here|this)"
    r"|.*your[-_ ]?(bot[-_ ]?|api[-_ ]?|app[-_ ]?)?(token|key|secret).*"
    r"|.*(token|key|secret)[-_ ]here|(sk|xoxb|xapp)-(\.{2,}|x{3,}.*|)|123456:ABC-DEF.*",
    re.IGNORECASE | re.DOTALL,
)
"""What documentation and templates put where a secret belongs. Short passwords of local servers are none."""


def _secret(value: Any) -> Any:
    if isinstance(value, SecretStr):
        return value
    if not isinstance(value, str):
        raise wrong()
    text = value.strip()
    if _PLACEHOLDER.fullmatch(text):
        raise wrong(
            found="a placeholder instead of a secret",
            allowed="the real one",
            cure='put the real one in, or a variable: "${NAME}"',
        )
    if any(not c.isprintable() or c.isspace() for c in text):
        raise wrong(
            found="a blank or control character inside a secret",
            allowed="one word",
            cure="copy the secret again, without line breaks",
        )
    return text


def _hidden(value: Any) -> Any:
    if not isinstance(value, str | int) or isinstance(value, bool):
        raise wrong()
    if any(not c.isprintable() for c in str(value)):
        raise wrong(found="a line break or control character", allowed="one line of text")
    return str(value)


def _chat_id(value: Any) -> str:
    return "" if value == "" else _identifier(value)


Text = Annotated[str, BeforeValidator(_text), Means("text", "put the value in quotes")]
Name = Annotated[str, BeforeValidator(_named), Means(NAME_RULE)]
Whole = Annotated[int, BeforeValidator(_number(int, (int,))), Means("a whole number")]
Number = Annotated[float, BeforeValidator(_number(float, (int, float))), Means("a number")]
Ratio = Annotated[float, BeforeValidator(_number(float, (int, float))), Field(gt=0, lt=1), Means("a number")]
Flag = Annotated[bool, BeforeValidator(_flag), Means("true or false")]
Duration = Annotated[float, BeforeValidator(_duration), Means("seconds, or text like 30s, 5m, 24h, 365d")]
Size = Annotated[int, BeforeValidator(_size), Means("bytes, or text like 64KiB, 10MiB")]
Port = Annotated[int, BeforeValidator(_number(int, (int,))), Field(ge=1, le=65535), Means("a port")]
Identifier = Annotated[str, BeforeValidator(_identifier), Means("an id as integer or text, without blanks")]
ChatId = Annotated[
    str, BeforeValidator(_chat_id), Means("an id as integer or text, without blanks; empty for none")
]
Identifiers = Annotated[
    tuple[Identifier, ...],
    BeforeValidator(_listed),
    Means("a list of ids", "write [123, 456], or one a line with a leading `-`"),
]
Texts = Annotated[tuple[Text, ...], BeforeValidator(_listed), Means("a list of texts", 'write ["a", "b"]')]
Bind = Annotated[
    Text,
    AfterValidator(_bind),
    Means('HOST:PORT with a port in 1-65535, e.g. 127.0.0.1:8642 or "[::1]:8642"'),
]
BaseUrl = Annotated[
    Text,
    AfterValidator(_url("http", "https", empty=True)),
    Means("http:// or https://, a host, and perhaps a port and path", "e.g. http://127.0.0.1:8080/v1"),
]
SocketUrl = Annotated[
    Text,
    AfterValidator(_url("ws", "wss", empty=True)),
    Means("ws:// or wss:// and a host", "e.g. wss://gateway.example.org"),
]
TimeZone = Annotated[
    Text,
    AfterValidator(_zone),
    Means("a name of the time zone database, or empty for the system's", "e.g. Europe/Berlin or UTC"),
]
Secret = Annotated[SecretStr, BeforeValidator(_secret), Means("a secret as text")]
HiddenText = Annotated[SecretStr, BeforeValidator(_hidden), Means("one line of text")]
NO_SECRET = SecretStr("")
