"""How many tokens a prompt takes, without the model's own tokenizer: by script, and corrected by every usage count.

A text is measured in kinds (Latin words, digits, Han characters, …), each with the tokens that a common modern
vocabulary spends on it. A ``Calibration`` multiplies the kinds; each finished call, whose tokens the provider
counted, corrects the multipliers: a Kalman filter over a constant state, so that what one count says about several
kinds at once is shared among them as far as each was in doubt (R. E. Kalman, 1960, doi:10.1115/1.3662552). Pure.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from operator import mul
from typing import TypeAlias, assert_never

from hermes.core.transcript import AssistantItem, Item, ToolResultItem, ToolSpec, UserItem
from hermes.policy.images import images_tokens


class Kind(IntEnum):
    """What a prompt is made of; the order of a ``Measure``."""

    WORDS = 0
    LETTERS = 1
    DIGITS = 2
    SYMBOLS = 3
    MARKS = 4
    SPACES = 5
    BREAKS = 6
    HAN = 7
    KANA = 8
    HANGUL = 9
    ALPHABETS = 10
    ABUGIDAS = 11
    OTHER = 12
    MESSAGES = 13
    TOOLS = 14
    IMAGES = 15


Measure: TypeAlias = tuple[float, ...]
"""Tokens of each ``Kind`` before calibration."""

NOTHING: Measure = (0.0,) * len(Kind)
_TEXT = tuple(kind for kind in Kind if kind < Kind.MESSAGES)
_PRICE = (0.85, 0.035, 0.8, 1.05, 0.15, 0.05, 0.95, 1.1, 1.0, 1.0, 0.45, 0.7, 1.5)
"""Tokens of one occurrence of each kind of text; the Latin ones fitted to prose and code with 49,000 words known."""
_LONG = 16
_LONG_PRICE = 0.25
"""Of each letter beyond ``_LONG`` in one run: what is so long is no word."""
MESSAGE_TOKENS = 4.0
_SPEC_TOKENS = 8.0
_ALPHABETS = "\u00c0-\u024f\u0370-\u058f\u10a0-\u10ff\u1e00-\u1fff"
_WORD = re.compile("[A-Z\u00c0-\u00de]?[a-z\u00df-\u024f\u1e00-\u1eff]+|[A-Z\u00c0-\u00de]+")
_LONG_RUN = re.compile(r"[a-z]{17,}|[A-Z]{17,}")
_SYMBOLS = re.compile("[!-/:-@\\[-`{-~]+")
_BREAK = re.compile(r"\s{2,}|[\n\r\t]")
_RUNS = (
    (Kind.HAN, re.compile("[\u2e80-\u303f\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff00-\uff65\U00020000-\U0003ffff]+")),
    (Kind.KANA, re.compile("[\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9f]+")),
    (Kind.HANGUL, re.compile("[\u1100-\u11ff\u3130-\u318f\uac00-\ud7af]+")),
    (Kind.ALPHABETS, re.compile(f"[{_ALPHABETS}]+")),
    (Kind.ABUGIDAS, re.compile("[\u0590-\u109f\u1200-\u1cff]+")),
)
_ASCII_LETTERS = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_ASCII_DIGITS = b"0123456789"
_SPACES = b" \t\n\r\x0b\x0c"


_SAMPLED, _PIECE, _PIECES = 60_000, 2_500, 16
"""Characters of a text that is still read whole; of a longer one so many pieces of so many characters are."""
_REMEMBERED = 20_000
_texts: dict[tuple[int, int], Measure] = {}
"""Measures by length and hash: the texts themselves are not kept alive by it."""
_specs: dict[int, tuple[ToolSpec, float]] = {}


def measure(text: str) -> Measure:
    """A text by kinds. A camel hump is a word; so base64 and hashes come out as the short bits they become."""
    key = (len(text), hash(text))
    found = _texts.get(key)
    if found is None:
        if len(_texts) >= _REMEMBERED:
            _texts.clear()
        found = _texts[key] = _measured(text) if len(text) <= _SAMPLED else _sampled(text)
    return found


def _sampled(text: str) -> Measure:
    """Of a very long text evenly spaced pieces stand for all of it."""
    step = (len(text) - _PIECE) // (_PIECES - 1)
    parts = [_measured(text[at : at + _PIECE]) for at in range(0, step * _PIECES, step)]
    scale = len(text) / sum(min(_PIECE, len(text) - at) for at in range(0, step * _PIECES, step))
    return tuple(value * scale for value in total(parts))


def _measured(text: str) -> Measure:
    raw = text.encode("ascii", "ignore")
    without = raw.translate(None, _ASCII_LETTERS)
    letters = len(raw) - len(without)
    symbols = without.translate(None, _ASCII_DIGITS)
    spaces = len(symbols) - len(symbols.translate(None, _SPACES))
    counts = [0.0] * len(_TEXT)
    counts[Kind.WORDS] = len(_WORD.findall(text))
    counts[Kind.LETTERS] = letters
    if letters > _LONG:
        excess = sum(len(run) - _LONG for run in _LONG_RUN.findall(text))
        counts[Kind.LETTERS] += excess * _LONG_PRICE / _PRICE[Kind.LETTERS]
    counts[Kind.DIGITS] = len(without) - len(symbols)
    counts[Kind.SYMBOLS] = len(_SYMBOLS.findall(text))
    counts[Kind.MARKS] = len(symbols) - spaces - counts[Kind.SYMBOLS]
    counts[Kind.SPACES] = spaces
    counts[Kind.BREAKS] = len(_BREAK.findall(text)) if spaces else 0
    beyond = len(text) - len(raw)
    if beyond:
        for kind, runs in _RUNS:
            counts[kind] = sum(map(len, runs.findall(text)))
        counts[Kind.OTHER] = max(0.0, beyond - sum(counts[kind] for kind, _ in _RUNS))
    return (*(n * price for n, price in zip(counts, _PRICE, strict=True)), 0.0, 0.0, 0.0)


def item_measure(item: Item) -> Measure:
    """An item's share of a prompt: its text, calls and pictures, and what a message costs by itself."""
    match item:
        case UserItem() | ToolResultItem():
            return _with(measure(item.text), messages=1, images=images_tokens(item.images))
        case AssistantItem():
            parts = [measure(item.text)]
            for call in item.tool_calls:
                parts += [measure(call.arguments), measure(call.name)]
            return _with(total(parts), messages=1 + len(item.tool_calls))
        case _:
            assert_never(item)


def _spec_tokens(spec: ToolSpec) -> float:
    known = _specs.get(id(spec))
    if known is not None and known[0] is spec:
        return known[1]
    if len(_specs) >= _REMEMBERED // 20:
        _specs.clear()
    parameters = json.dumps(spec.parameters, ensure_ascii=False, default=str)
    found = _SPEC_TOKENS + sum(sum(_measured(part)) for part in (spec.name, spec.description, parameters))
    _specs[id(spec)] = (spec, found)
    return found


def frame_measure(system: str, tools: Iterable[ToolSpec]) -> Measure:
    """What is sent with every call beside the items: the system text, the tools, the answer's opening."""
    specs = sum(map(_spec_tokens, tools))
    return _with(measure(system), messages=2 if system else 1, tools=specs)


def prompt_measure(system: str, items: Iterable[Item], tools: Iterable[ToolSpec] = ()) -> Measure:
    """A whole prompt."""
    return total([frame_measure(system, tools), *map(item_measure, items)])


def total(parts: Sequence[Measure]) -> Measure:
    """The sum, kind by kind."""
    return tuple(map(sum, zip(*parts, strict=True))) if parts else NOTHING


def _with(text: Measure, *, messages: int = 0, tools: float = 0.0, images: int = 0) -> Measure:
    return (*text[: Kind.MESSAGES], messages * MESSAGE_TOKENS, tools, float(images))


# ---- what usage counts teach ----------------------------------------------------------------------

LEAST = (0.1, 0.4, 0.3, 0.3, 0.2, 0.2, 0.1, 0.45, 0.45, 0.45, 0.45, 0.45, 0.3, 0.3, 0.02, 0.2)
MOST = 40.0
"""Bounds of a multiplier: no vocabulary is better than that; only a template may leave tools out altogether."""
_OWN = (0.12, 0.3, 0.5, 0.25, 0.5, 0.5, 0.3, 0.9, 0.9, 0.9, 0.8, 0.8, 0.6, 0.4, 1.0, 0.5)
"""Doubt about each kind by itself. Templates differ widely in what they make of messages and tools."""
_SHARED = 0.08
"""Doubt about a vocabulary as a whole."""
_BYTES = (0.1, 1.0, 1.0, 1.0, 1.0, 1.0, 0.1, 3.0, 3.0, 3.0, 2.0, 2.8, 3.5)
"""Tokens of one occurrence of each kind where a vocabulary knows next to nothing but bytes."""
_NOISE, _NOISE_TOKENS = 0.015, 3.0
"""Expected error of one prompt: its share, and tokens."""
_DRIFT = 0.0004
"""Variance added to every kind at each count, so that another model behind the same name is found out."""
_LIE_LOW, _LIE_HIGH = 0.3, 8.0
"""A count outside of these, against the estimate, teaches nothing: servers exist that report constants."""


@dataclass(frozen=True, slots=True)
class Filter:
    """One idea of a vocabulary: multipliers of the kinds, the doubt about them (a covariance, by rows), and how well
    it foretold the counts (the logarithm of its likelihood)."""

    factors: tuple[float, ...]
    doubt: tuple[tuple[float, ...], ...]
    merit: float = 0.0


@dataclass(frozen=True, slots=True)
class Calibration:
    """What is known of a model's vocabulary: the best idea first, and how many counts were seen."""

    ideas: tuple[Filter, ...]
    counts: int = 0

    @property
    def factors(self) -> tuple[float, ...]:
        """The multipliers to use."""
        return self.ideas[0].factors


def _prior(factors: Sequence[float], merit: float) -> Filter:
    size = len(Kind)
    doubt = [[0.0] * size for _ in range(size)]
    for a in Kind:
        doubt[a][a] = (_OWN[a] * factors[a]) ** 2
        for b in _TEXT:
            if a in _TEXT:
                doubt[a][b] += _SHARED**2 * factors[a] * factors[b]
    return Filter(tuple(factors), tuple(map(tuple, doubt)), merit)


_OF_BYTES = tuple(b / p for b, p in zip(_BYTES, _PRICE, strict=True))
_LEFT_OUT = 0.05
"""What tools weigh where a template leaves them out."""
PRIOR = Calibration((
    _prior((1.0,) * len(Kind), 0.0),
    _prior((*_OF_BYTES, 3.0, 1.5, 1.0), -1.5),
    _prior((*_OF_BYTES, 3.0, _LEFT_OUT, 1.0), -2.0),
))  # fmt: skip
"""Nothing was counted yet. Vocabularies of bytes are rare, so theirs must first prove itself; their templates are
often those of small models, which leave tools out."""
_DECIDED = 6
"""Counts after which only the best idea is followed."""
_SETTLED, _GOOD = 30, 0.02
"""Counts after which an estimate as near as this teaches nothing more."""


def tokens(measured: Measure, calibration: Calibration = PRIOR) -> int:
    """The estimate for what was measured; at least 1."""
    return max(1, round(_dot(measured, calibration.ideas[0].factors)))


def weigher(calibration: Calibration = PRIOR) -> Callable[[Item], int]:
    """What an item weighs in tokens, for one model."""
    return lambda item: tokens(item_measure(item), calibration)


def certainty(calibration: Calibration) -> float:
    """The share of an estimate that is taken for certain: few counts, much doubt."""
    return 0.65 if calibration.counts < 3 else 0.8


def learned(calibration: Calibration, measured: Measure, counted: int) -> Calibration:
    """``calibration`` after a provider counted ``counted`` input tokens for the prompt that was ``measured``.

    Counts that cannot be (none, a constant, another unit) change nothing.
    """
    best = calibration.ideas[0].factors
    least = _dot(measured, best) - measured[Kind.TOOLS] * best[Kind.TOOLS]
    if counted <= 0 or counted < _LIE_LOW * least - 16 or counted > _LIE_HIGH * sum(measured) + 200:
        return calibration
    if calibration.counts >= _SETTLED and abs(counted - _dot(measured, best)) <= _GOOD * counted:
        return calibration
    ideas = sorted((_corrected(idea, measured, counted) for idea in calibration.ideas), key=lambda idea: -idea.merit)
    counts = calibration.counts + 1
    return Calibration(tuple(ideas[:1] if counts >= _DECIDED else ideas), counts)


def _corrected(idea: Filter, measured: Measure, counted: int) -> Filter:
    """The filter's step."""
    size = len(Kind)
    doubt = [list(row) for row in idea.doubt]
    for kind in range(size):
        doubt[kind][kind] += _DRIFT
    along = [_dot(row, measured) for row in doubt]
    spread = _dot(along, measured) + (_NOISE * counted + _NOISE_TOKENS) ** 2
    gain = [value / spread for value in along]
    error = counted - _dot(measured, idea.factors)
    factors = _bounded(factor + g * error for factor, g in zip(idea.factors, gain, strict=True))
    after = tuple(tuple(doubt[a][b] - gain[a] * along[b] for b in range(size)) for a in range(size))
    return Filter(factors, after, idea.merit - error**2 / (2 * spread) - math.log(spread) / 2)


def differs(one: Calibration, other: Calibration, share: float = 0.05) -> bool:
    """Whether a multiplier moved by more than ``share``: worth keeping on disk."""
    return any(abs(a - b) > share * b for a, b in zip(one.factors, other.factors, strict=True))


def dump(calibration: Calibration) -> str:
    """As short text; ``load`` reads it back to four digits."""
    ideas = [
        [
            _short(idea.merit),
            list(map(_short, idea.factors)),
            [_short(row[b]) for a, row in enumerate(idea.doubt) for b in range(a, len(row))],
        ]
        for idea in calibration.ideas
    ]
    return json.dumps([len(Kind), calibration.counts, ideas], separators=(",", ":"))


def load(text: str) -> Calibration:
    """What ``dump`` wrote; ``PRIOR`` for anything else (an older version's text)."""
    try:
        size, counts, ideas = json.loads(text)
        read = tuple(_idea(float(merit), factors, upper) for merit, factors, upper in ideas)
    except (ValueError, TypeError):
        return PRIOR
    return Calibration(read, int(counts)) if size == len(Kind) and read else PRIOR


def _idea(merit: float, factors: Sequence[float], upper: Sequence[float]) -> Filter:
    """Raises ValueError when the numbers are not as many as there must be."""
    size = len(Kind)
    if len(factors) != size or len(upper) != size * (size + 1) // 2:
        raise ValueError("not of this version")
    doubt, place = [[0.0] * size for _ in range(size)], iter(upper)
    for a in range(size):
        for b in range(a, size):
            doubt[a][b] = doubt[b][a] = float(next(place))
    return Filter(_bounded(map(float, factors)), tuple(map(tuple, doubt)), merit)


def _bounded(factors: Iterable[float]) -> tuple[float, ...]:
    return tuple(min(MOST, max(least, factor)) for factor, least in zip(factors, LEAST, strict=True))


def _short(value: float) -> float:
    return float(f"{value:.4g}")


def _dot(a: Sequence[float], b: Sequence[float]) -> float:
    return float(sum(map(mul, a, b)))
