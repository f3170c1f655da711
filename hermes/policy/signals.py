"""What a failure says, dug out of whatever it came wrapped in.

Bodies arrive nested and disguised: JSON in a JSON string, a Python repr of bytes, an HTML page, an error
object inside a 200, a router's sentence around another router's sentence. `read_signals` unwraps them all,
within fixed bounds, and never raises.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hermes.core.failures import FailureFacts, FaultKind
from hermes.policy.embedded import embedded

MAX_DEPTH = 10
MAX_NODES = 600
MAX_TEXT = 40_000
MAX_READ = 8_000
"""Characters of normalised text that rules read: the first three quarters and the last quarter of this."""


TEXT_KEYS = frozenset(
    {
        "message",
        "msg",
        "error",
        "error_msg",
        "errormessage",
        "error_message",
        "error_description",
        "detail",
        "details",
        "raw",
        "title",
        "description",
        "body",
        "errors",
        "remedy_hint",
        "failure_reason",
        "cause",
        "status_msg",
        "text",
        "error_details",
        "response",
        "refusal",
        "base_resp",
        "incomplete_details",
        "block_reason",
        "blockreason",
        "quotaid",
        "quotametric",
        "limit_source",
    }
)
CODE_KEYS = frozenset(
    {
        "code",
        "type",
        "status",
        "reason",
        "error_code",
        "errorcode",
        "error_type",
        "errortype",
        "name",
        "__type",
        "status_code",
        "statuscode",
        "http_code",
        "httpstatuscode",
        "http_status",
        "status_message",
    }
)
STATUS_ONLY_KEYS = frozenset(
    {
        "http_code",
        "httpstatuscode",
        "http_status",
        "status_code",
        "statuscode",
        "status",
    }
)
EMPTY_WORDS = frozenset({"none", "null", "undefined", "error", "unknown error", ""})

_URL = re.compile(r"https?://\S+")
_TAG = re.compile(r"<(?:script|style)\b.*?</(?:script|style)>|<[^>]{0,400}>", re.S | re.I)
_HTML = re.compile(r"<!doctype html|<html[\s>]|<head>|<body[\s>]", re.I)
_QUOTES = re.compile("[`'\"\u2018\u2019\u201c\u201d\\\\]")
_PAIR = re.compile(
    r"""\\?["'](code|type|status|reason|error_code|http_code)\\?["']\s*:\s*\\?["']?([A-Za-z0-9_.\-]{2,80})"""
)
_TEXT_STATUS = re.compile(
    r"(?:^\W{0,3}|\b(?:http|https|status|status ?code|error ?code|response code|api error|code|error"
    r"|failed|llm error)"
    r"(?:/\d(?:\.\d)?)?\W{1,4}(?:code\W{1,3})?)([45]\d\d)(?![\d.]*\d)\b(?! ?(?:tokens|ms|bytes"
    r"|characters|x \d))"
)
_BARE_CODE = re.compile(r"[a-z]+(?:[_.-][a-z0-9]+){1,9}")
_BRACKETED = re.compile(r"\b(?:rejected|failed|error|status|response)\b[^()\n]{0,20}\(([45]\d\d)\)")
_LEADING_STATUS = re.compile(r"^\W{0,3}([45]\d\d)\b(?!\s*(?:tokens|bytes|characters))")


@dataclass(frozen=True, slots=True)
class Signals:
    """The evidence about one failure, normalised.

    `status`: the most credible HTTP status (the innermost stated one, else the outer). `codes`: every code,
    type, status word and reason found, lower case. `text`: all messages, lower case, one a line, without
    quotes, back-ticks, URLs and tags. `urls`: the URLs taken out. `exceptions`: class names without module,
    lower case. `headers`: lower-case names, those quoted in the body included.
    """

    kind: FaultKind
    status: int | None
    outer_status: int | None
    codes: frozenset[str]
    text: str
    urls: str
    exceptions: frozenset[str]
    headers: Mapping[str, str]
    provider: str
    param: str
    html: bool
    vacuous: bool = False
    numbers: Mapping[str, int] = field(default_factory=dict)


class _Collector:
    """Walks a body once, within `MAX_NODES`; the last status found is the innermost."""

    def __init__(self) -> None:
        self.codes: list[str] = []
        self.texts: list[str] = []
        self.statuses: list[int] = []
        self.headers: dict[str, str] = {}
        self.numbers: dict[str, int] = {}
        self.param = ""
        self.html = False
        self.nodes = 0

    def walk(self, node: object, depth: int, key: str) -> None:
        self.nodes += 1
        if depth > MAX_DEPTH or self.nodes > MAX_NODES:
            return
        if isinstance(node, Mapping):
            self._mapping(node, depth)
        elif isinstance(node, str | bytes | bytearray):
            self.string(_as_text(node), depth, key)
        elif isinstance(node, Sequence):
            for item in list(node)[:50]:
                self.walk(item, depth + 1, key)

    def _mapping(self, node: Mapping[object, object], depth: int) -> None:
        later: list[tuple[str, object]] = []
        for raw_key, value in list(node.items())[:80]:
            key = str(raw_key).lower()
            if key == "headers" and isinstance(value, Mapping):
                self.headers.update(lower_headers(value))
            elif key in CODE_KEYS and not isinstance(value, Mapping):
                self._code(key, value)
            elif key == "param" and isinstance(value, str):
                self.param = value[:200]
            elif isinstance(value, int) and not isinstance(value, bool):
                self.numbers.setdefault(key, value)
            elif isinstance(value, Mapping | Sequence) and not _skipped(key, value):
                later.append((key, value))
        for key, value in later:
            self.walk(value, depth + 1, key)

    def _code(self, key: str, value: object) -> None:
        if isinstance(value, bool) or value is None:
            return
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if not isinstance(value, int | str):
            return
        word = str(value).strip().lower()[:120]
        number = parse_status(word)
        if number is not None and number != 200:
            self.statuses.append(number)
        elif word not in EMPTY_WORDS and not (key in STATUS_ONLY_KEYS and word.isdigit()):
            self.codes.append(word)
            if " " in word:
                self.texts.append(word)

    def string(self, value: str, depth: int, key: str) -> None:
        value = value[:MAX_TEXT]
        if _HTML.search(value):
            self.html = True
            value = _TAG.sub(" ", value)
        found = False
        for inner in embedded(value):
            found = True
            self.walk(inner, depth + 1, key)
        if not found and ("{" in value or "\\" in value):
            for name, word in _PAIR.findall(value):
                self._code(name, word)
        if key in TEXT_KEYS or key == "":
            self.texts.append(value)


def _skipped(key: str, value: object) -> bool:
    """Strings count only under keys that hold text for people; containers always count."""
    return isinstance(value, str | bytes | bytearray) and key not in TEXT_KEYS


def _as_text(value: str | bytes | bytearray) -> str:
    return value if isinstance(value, str) else bytes(value[:MAX_TEXT]).decode("utf-8", "replace")


def parse_status(value: object) -> int | None:
    """An HTTP status from an int, an integral float or a string such as "429"; None for anything else."""
    if isinstance(value, str) and re.fullmatch(r"\s*[1-5][0-9]{2}\s*", value):
        return int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and 100 <= value <= 599:
        return value
    return None


def lower_headers(headers: object) -> dict[str, str]:
    """Header names in lower case, values as text; {} for anything that is no mapping."""
    if not isinstance(headers, Mapping):
        return {}
    return {
        str(name).lower(): _as_text(value) if isinstance(value, str | bytes | bytearray) else str(value)
        for name, value in list(headers.items())[:200]
        if value is not None and not isinstance(value, Mapping)
    }


def normalise(text: str) -> str:
    """One line, lower case, without URLs, quotes and back-ticks; escapes of nested JSON become spaces."""
    text = text.replace("\\n", " ").replace("\\t", " ").replace('\\"', " ")
    text = _URL.sub(" ", text)
    return " ".join(_QUOTES.sub("", text).lower().split())


def _shortened(text: str) -> str:
    if len(text) <= MAX_READ:
        return text
    return f"{text[: MAX_READ * 3 // 4]}\n{text[-MAX_READ // 4 :]}"


_EMPTY_PHRASES = re.compile(
    r"\b(?:an? (?:unknown )?error occurred|unknown error|provider returned error|providerbizerror"
    r"|request failed"
    r"|this request is not valid\. check the model name and other parameters|additional info|invalid request"
    r"|invalid_request_error|the request was invalid|bad request|badrequesterror|badrequest|api error"
    r"|llm error"
    r"|client error|upstream error|error code|status code|no body|http|error|none|null"
    r"|(?:error)?type|message|param|code|provider: [\w./-]+"
    r"|execution failed|for url|for more information check|request id:? ?[\w:-]+|post|[a-z_]*api_?(?:call)?error)\b"
)


def says_nothing(text: str) -> bool:
    """Whether the whole text consists of phrases without content (`400 Provider returned error`) and
    numbers."""
    return re.search(r"[^\W\d_]", _EMPTY_PHRASES.sub(" ", text)) is None


def stated_status(text: str) -> int | None:
    """The status that a sentence states (`API Error: 529 Overloaded`, `HTTP 502 Bad Gateway`), the last
    one."""
    leading = _LEADING_STATUS.search(text)
    stated = [int(number) for line in text.split("\n") for number in _TEXT_STATUS.findall(line)]
    stated += [int(number) for number in _BRACKETED.findall(text)]
    if stated:
        return stated[-1]
    return int(leading.group(1)) if leading else None


def leaf(name: str) -> str:
    """`openai.error.AuthenticationError` → `authenticationerror`."""
    return re.split(r"[.:/\s]", name.strip().rstrip("."))[-1].lower()[:120]


def exception_code(name: str) -> str | None:
    """`anthropic.ContractSpendLimitReachedError` → `contract_spend_limit_reached`; None for names of fewer
    than three words: they say no more than a status does, and wrappers choose them by status."""
    camel = re.split(r"[.:/\s]", name.strip())[-1].removesuffix("Error").removesuffix("Exception")[:120]
    parts = re.findall(r"[A-Z][a-z]+|[A-Z]+(?![a-z])", camel)
    return "_".join(parts).lower() if len(parts) >= 3 and "".join(parts) == camel else None


def read_signals(facts: FailureFacts) -> Signals:
    """All the evidence in `facts`. Never raises; work is bounded by MAX_NODES and MAX_TEXT."""
    collector = _Collector()
    for word in (facts.code, facts.type):
        if word is not None:
            collector._code("code", word)
    code = exception_code(facts.exception or "")
    if code is not None:
        collector.codes.append(code)
    if facts.message:
        collector.string(facts.message, 0, "")
    collector.walk(facts.body, 0, "")
    collector.codes += [word for word in map(str.lower, collector.texts) if _BARE_CODE.fullmatch(word)]
    lines = [line for line in dict.fromkeys(normalise(text) for text in collector.texts) if line]
    text = _shortened("\n".join(lines))
    urls = " ".join(url for raw in collector.texts for url in _URL.findall(raw)).lower()
    exceptions = [leaf(name) for name in (facts.exception or "", *facts.causes) if name]
    exceptions += re.findall(r"\b([a-z_]{3,80}(?:error|exception))\b(?= ?[:()-])", text)
    collector.codes += re.findall(
        r"\b(?:error code|error type|code|type|reason)[:=] ?([a-z_.]{4,60})\b", text
    )
    outer = parse_status(facts.status)
    inner = next((s for s in reversed(collector.statuses) if s >= 400), None)
    if inner is None and (outer is None or outer < 400 or outer >= 500):
        inner = stated_status(text)
    return Signals(
        kind=facts.kind,
        status=inner if inner is not None else outer,
        outer_status=outer,
        codes=frozenset(collector.codes),
        text=text,
        urls=urls,
        exceptions=frozenset(exceptions),
        headers={**collector.headers, **facts.headers},
        provider=facts.provider.lower(),
        param=(facts.param or collector.param).lower(),
        html=collector.html,
        vacuous=says_nothing(text),
        numbers=collector.numbers,
    )
