"""The numbers an error states about the limit it met."""

from __future__ import annotations

import re

from hermes.core.failures import Reason
from hermes.policy.signals import Signals

_N = r"(\d[\d,_]{0,14})"


def _patterns(*patterns: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(pattern.replace("<n>", _N)) for pattern in patterns)


_INPUT_OUTPUT = _patterns(
    r"exceed context limit: ?(?P<input>\d+) \+ (?P<output>\d+) > (?P<window>\d+)",
    r"maximum context length is (?P<window>\d+) tokens[^\n]{0,100}?\(?(?P<input>\d+) (?:in the messages"
    r"|of text input"
    r"|in your prompt|from the input messages|of input|in the prompt)[^\n]{0,60}?(?P<output>\d+) (?:in the"
    r"|for the|of tool)",
    r"too large: ?(?P<output>\d+)\.[^\n]{0,80}maximum context length is (?P<window>\d+) tokens and your "
    r"request has "
    r"(?P<input>\d+) input tokens",
)

_OUTPUT_CAP = _patterns(
    r"tokens: ?<n> ?> ?<n>",
    r"too large: ?<n>\. this model supports at most <n>",
    r"(?:must be|should be|less than or equal to|at most|<=|cannot exceed|cannot be (?:greater|larger"
    r"|more) than"
    r"|exceeds the model limit of|maximum(?: value)?(?: is| of)?)\D{0,40}<n>\b(?! *(?:,|\.\.|and|to) *\d)",
    r"\[\d+, ?<n>\]",
    r"between \d+ and <n>",
)

_AFFORD = _patterns(r"up to <n> tokens, but can only afford <n>")

_WINDOW = _patterns(
    r"(?:prompt|input|request|message)[^\n]{0,40}?<n>(?: tokens)?\)?,? ?(?:>|exceeds?|is longer than|is "
    r"larger than|is greater than)"
    r"[^\n]{0,70}?<n>",
    r"<n> tokens\)?[^\n]{0,90}?(?:window|limit|context|maximum|length)[^\n]{0,40}?<n>",
    r"length <n>\)[^\n]{0,60} of <n>",
    r"first <n> tokens[^\n]{0,120}only <n>",
    r"current length is <n> while limit is <n>",
    r"actual: ?<n>",
)
_WINDOW_FIRST = _patterns(
    r"(?:maximum|max) (?:context|prompt|model|sequence) (?:length|limit|size)\D{0,12}<n>[^\n]{0,80}?<n>",
    r"limit:? ?<n>\b[^\n]{0,80}?requested:? ?<n>",
    r"maxlength: ?<n>, actual: ?<n>",
)
_WINDOW_ONLY = _patterns(
    r"(?:maximum|max) (?:context|prompt|model|sequence) (?:length|limit|size)\D{0,12}<n>",
    r"max(?:imum)? (?:body )?size:? ?<n> tokens",
    r"limit of <n>",
    r"only supports up to <n>",
    r"\[\d+, ?<n>\]",
    r"must be <= ?<n>",
)

_IMAGE = _patterns(
    r"<n> bytes > <n> bytes",
    r"= <n> pixels\. maximum allowed: <n>",
)
_IMAGE_ONLY = _patterns(
    r"(?:max allowed size|maximum)[^\n]{0,40}?: <n> pixels",
    r"maximum allowed: <n>",
    r"maximum (?:of |is )?<n> pixels",
    r"must be (?:less|smaller) than <n>",
)
_IMAGE_COUNT = _patterns(r"at most <n> image")
_MEGABYTES = _patterns(r"(?:exceeds?|maximum|limit|size)[^\n]{0,30} <n> ?mb")


def _int(text: str) -> int:
    return int(text.replace(",", "").replace("_", "") or "0")


def _pair(patterns: tuple[re.Pattern[str], ...], text: str) -> tuple[int, int] | None:
    for pattern in patterns:
        match = pattern.search(text)
        if match is not None and pattern.groups >= 2:
            return _int(match.group(1)), _int(match.group(2))
    return None


def _one(patterns: tuple[re.Pattern[str], ...], text: str) -> int | None:
    for pattern in patterns:
        match = pattern.search(text)
        if match is not None:
            return _int(match.group(pattern.groups))
    return None


def stated_limit(reason: Reason, detail: str | None, signals: Signals) -> tuple[int | None, int | None]:
    """(limit, requested) as `Verdict` defines them; None where the error states no number."""
    text = signals.text
    if reason is Reason.CONTEXT_OVERFLOW:
        return _overflow(detail, signals)
    if detail == "output_cap":
        pair = _pair(_OUTPUT_CAP[:2], text)
        return (pair[1], pair[0]) if pair else (_one(_OUTPUT_CAP[2:], text), None)
    if detail == "affordable":
        pair = _pair(_AFFORD, text)
        return (pair[1], pair[0]) if pair else (None, None)
    if detail == "image_count":
        return _one(_IMAGE_COUNT, text), None
    if reason is Reason.IMAGE_TOO_LARGE:
        side = signals.numbers.get("max_side_length_pixels")
        return (side, None) if side is not None else _image(text)
    return None, None


def _image(text: str) -> tuple[int | None, int | None]:
    pair = _pair(_IMAGE, text)
    if pair is not None:
        return pair[1], pair[0]
    only = _one(_IMAGE_ONLY, text)
    if only is not None:
        return only, None
    megabytes = _one(_MEGABYTES, text)
    return (megabytes * 1_048_576 if megabytes else None), None


def _overflow(detail: str | None, signals: Signals) -> tuple[int | None, int | None]:
    text = signals.text
    if detail == "output_cap":
        for pattern in _INPUT_OUTPUT:
            match = pattern.search(text)
            if match is not None:
                allowed = int(match.group("window")) - int(match.group("input"))
                return (allowed if allowed > 0 else None), int(match.group("output"))
    window, prompt = signals.numbers.get("n_ctx"), signals.numbers.get("n_prompt_tokens")
    if window is not None:
        return window, prompt
    first = _pair(_WINDOW_FIRST, text)
    if first is not None:
        return first
    pair = _pair(_WINDOW, text)
    if pair is not None:
        return pair[1], pair[0]
    return _one(_WINDOW_ONLY, text), None
