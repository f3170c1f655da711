"""What rules read of a failed platform call: lower-case text without addresses, stated codes, a status."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from hermes.core.delivery import DeliveryFacts, Sent

MAX_TEXT = 20_000
_MAX_STRINGS = 400
_MAX_DEPTH = 8


@dataclass(frozen=True, slots=True)
class Signals:
    """The facts as rules read them: lower-case, without addresses, with every code that was stated."""

    platform: str
    status: int | None
    codes: frozenset[str]
    text: str
    exceptions: frozenset[str]
    sent: Sent


def strings_of(body: object, depth: int = 0) -> Iterator[str]:
    """Every text and number in a JSON-like body, keys of error objects excluded; bounded in depth."""
    if depth > _MAX_DEPTH:
        return
    if isinstance(body, str):
        yield body
    elif isinstance(body, bytes | bytearray):
        yield bytes(body[:MAX_TEXT]).decode("utf-8", "replace")
    elif isinstance(body, Mapping):
        for value in body.values():
            yield from strings_of(value, depth + 1)
    elif isinstance(body, list | tuple):
        for value in body:
            yield from strings_of(value, depth + 1)


_URL_PATH = re.compile(r"(?:https?://\S+?|/)bot[^/\s]+/(\w+)\S*|https?://\S+", re.IGNORECASE)
_CODE_IN_TEXT = re.compile(r"(?:error[ _]?code|\bcode)['\"]?\s*[:=]?\s*['\"]?(\d{4,6})\b")
_STATUS_IN_TEXT = re.compile(
    r"(?:status[ _]?code(?:error)?|server response|error[ _]code|\bhttp|etelegram|\bstatus)"
    r"['\"]?\s*[:=]?\s*([1-5]\d\d)\b"
    r"|^\W*(?:error\W+)?([1-5]\d\d)\b(?=[:)\s]\s*\W*[a-z])|<title>\s*([1-5]\d\d)\b|<response \[([1-5]\d\d)\]>"
    r"|\[([45]\d\d) [a-z_]{3,40}\]",
    re.MULTILINE,
)
_WORD_CODE = re.compile(r"\b[a-z]+(?:_[a-z]+)+\b|\bratelimited\b")
_CLOSE_CODE = re.compile(
    r"(?:closed with|close code|websocket closed|shard id \S+ websocket closed with)\D{0,12}([14]\d{3})\b"
)


def _plain(text: str) -> str:
    """Lower case, straight quotes, and of each address only the method it names."""
    text = _URL_PATH.sub(lambda m: m.group(1) or " ", text[:MAX_TEXT])
    return text.lower().replace("’", "'").replace("`", "'")


def _codes(facts: DeliveryFacts, text: str) -> frozenset[str]:
    found = set(_CODE_IN_TEXT.findall(text)) | set(_WORD_CODE.findall(text)) | set(_CLOSE_CODE.findall(text))
    if facts.code:
        found.add(str(facts.code).lower())
    if isinstance(facts.body, Mapping):
        for key in ("code", "error", "reason", "error_code"):
            value = facts.body.get(key)
            if isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)):
                found.add(str(value).lower()[:100])
            elif isinstance(value, Mapping) and isinstance(value.get("code"), str | int):
                found.add(str(value["code"]).lower()[:100])
    return frozenset(found)


def _status(facts: DeliveryFacts, text: str) -> int | None:
    if facts.status is not None and facts.status != 200:
        return facts.status
    if isinstance(facts.body, Mapping):
        for key in ("error_code", "httpStatus", "status", "statusCode"):
            value = facts.body.get(key)
            if isinstance(value, int) and not isinstance(value, bool) and 100 <= value <= 599:
                return value
    found = _STATUS_IN_TEXT.search(text)
    return int(next(g for g in found.groups() if g)) if found else facts.status


def read_signals(facts: DeliveryFacts) -> Signals:
    """The facts as rules read them. Never raises, whatever the body holds."""
    pieces = [facts.message, *islice(strings_of(facts.body), _MAX_STRINGS)]
    text = _plain("\n".join(dict.fromkeys(p[:MAX_TEXT] for p in pieces if p)))
    names = [n for n in (facts.exception, *facts.causes) if n]
    status = _status(facts, text)
    return Signals(
        platform=facts.platform.lower(),
        status=status,
        codes=_codes(facts, text),
        text=text,
        exceptions=frozenset(n.rsplit(".", 1)[-1].lower() for n in names),
        sent=facts.sent,
    )
