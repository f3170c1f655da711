"""How long a stream may take, and how the parts of an answer that was cut off are joined. Pure.

A server on this machine reads a long prompt at a few hundred tokens a second, and a model that thinks in
secret sends nothing until it has thought: both are judged by wider limits than a hosted chat model, unless
the configuration states its own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class TimeLimits:
    """Seconds: until the first event of an answer, between two signs of progress, for the whole answer."""

    first_byte: float
    stall: float
    total: float


ORDINARY = TimeLimits(120.0, 60.0, 900.0)
LOCAL = TimeLimits(900.0, 300.0, 3600.0)
"""For a server on this machine or in its network: prompt reading and model loading count as silence."""
REASONING = TimeLimits(600.0, 300.0, 1800.0)
"""For a model that reasons; hidden reasoning is silence on the wire, however alive the connection is."""

_REASONS = re.compile(
    r"(?:^|[/:_. -])(?:o[1-9](?![0-9a-z])|gpt-5|gpt-oss|deepseek-(?:reasoner|r\d)|r1(?![0-9a-z])|qwq|qvq|magistral"
    r"|grok-(?:[4-9]|\d+-mini)|gemini-(?:2\.5|[3-9])|claude-(?:opus|sonnet|fable)-[4-9]|kimi-k\d+-think|minimax-m\d"
    r"|glm-(?:4\.[5-9]|[5-9]|z1))|think|reason",
    re.I,
)
"""Families whose models reason before they answer, by the names their makers give them."""


def reasons(model: str) -> bool:
    """Whether a model of this name is known to think before it speaks."""
    return _REASONS.search(model) is not None


def is_local(base_url: str) -> bool:
    """Whether the address is this machine's or its private network's. Names other than localhost are not."""
    host = urlsplit(base_url).hostname or ""
    if host == "localhost" or host.endswith((".localhost", ".local")):
        return True
    try:
        address = ip_address(host)
    except ValueError:
        return False
    return address.is_loopback or address.is_private


def time_limits(model: str, base_url: str) -> TimeLimits:
    """The limits that suit this model at this address: the widest of those that apply."""
    found = [ORDINARY]
    if is_local(base_url):
        found.append(LOCAL)
    if reasons(model):
        found.append(REASONING)
    return TimeLimits(
        max(f.first_byte for f in found), max(f.stall for f in found), max(f.total for f in found)
    )


OVERLAP = 400
"""Characters within which a continuation's repetition of what was said before is looked for."""

_LAST_WORD = 40
_TELLING = 8
"""Letters and digits that make an equal beginning a repetition and no coincidence."""

CONTINUE = (
    "Your answer was cut off by the output limit. Go on exactly where it stops: begin with the very next "
    "words. Repeat nothing, add no introduction and no remark about this."
)


def resume_from(text: str) -> str:
    """What of a cut-off answer is kept: all but a last word that may be half. The continuation says it again."""
    end = max(text.rfind(" "), text.rfind("\n"), text.rfind("\t")) + 1
    return text[:end] if text[:end].strip() and len(text) - end <= _LAST_WORD else text


def repeated(before: str, after: str) -> int:
    """How many characters ``after`` begins with that ``before`` ends with; 0 for a mere coincidence."""
    for length in range(min(OVERLAP, len(before), len(after)), 0, -1):
        piece = after[:length]
        if before.endswith(piece) and (piece.isspace() or sum(map(str.isalnum, piece)) >= _TELLING):
            return length
    return 0


def may_repeat(before: str, beginning: str) -> bool:
    """Whether more of a continuation is needed to say how much of ``before`` it repeats."""
    return len(beginning) < OVERLAP and beginning in before[-OVERLAP:]


def joined(before: str, after: str) -> str:
    """Both, without what ``after`` repeats."""
    return before + after[repeated(before, after) :]
