"""Repairs and the one table that says which of them can cure what."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from types import MappingProxyType

from hermes.core.failures import Reason


class Repair(StrEnum):
    """One change that may make the next attempt succeed. Each costs no retry and has a limit per call."""

    REBUILD_TRANSPORT = "rebuild_transport"
    REFRESH_CREDENTIAL = "refresh_credential"
    ROTATE_CREDENTIAL = "rotate_credential"
    REDUCE_MAX_TOKENS = "reduce_max_tokens"
    RAISE_MAX_TOKENS = "raise_max_tokens"
    COMPACT = "compact"
    SHRINK_IMAGES = "shrink_images"
    DROP_IMAGES = "drop_images"
    MOVE_TOOL_IMAGES = "move_tool_images"
    STRIP_GRAMMAR_PATTERNS = "strip_grammar_patterns"
    DROP_THINKING_SIGNATURES = "drop_thinking_signatures"
    LOWER_CONTEXT_TIER = "lower_context_tier"
    DROP_LONG_CONTEXT_BETA = "drop_long_context_beta"


SMALLEST_OUTPUT = 256
"""Output tokens below which an answer is not worth asking for: the request is not reduced to fewer."""

NEEDS_IMAGES = frozenset({Repair.SHRINK_IMAGES, Repair.DROP_IMAGES, Repair.MOVE_TOOL_IMAGES})
"""Skipped when the request holds no image."""

DEFAULT_LIMITS: Mapping[Repair, int] = MappingProxyType({Repair.COMPACT: 3})
"""How often a repair may be made for one call; 1 where nothing is said. Compaction: DESIGN §5."""


def key_limits(pools: Iterable[tuple[int, bool]]) -> dict[Repair, int]:
    """The limits of the two repairs of keys for providers with (keys, whether they can be fetched anew): a pool
    of n keys is gone through once, and each provider's key is fetched anew once."""
    known = list(pools)
    return {
        Repair.ROTATE_CREDENTIAL: sum(max(0, keys - 1) for keys, _ in known),
        Repair.REFRESH_CREDENTIAL: sum(fetched for _, fetched in known),
    }

CURES: Mapping[tuple[Reason, str | None], tuple[Repair, ...]] = MappingProxyType({
    (Reason.AUTH, None): (Repair.REFRESH_CREDENTIAL, Repair.ROTATE_CREDENTIAL),
    (Reason.AUTH, "proxy"): (),
    (Reason.AUTH_PERMANENT, None): (Repair.ROTATE_CREDENTIAL,),
    (Reason.BILLING, None): (Repair.ROTATE_CREDENTIAL,),
    (Reason.BILLING, "affordable"): (Repair.REDUCE_MAX_TOKENS, Repair.ROTATE_CREDENTIAL),
    (Reason.RATE_LIMIT, None): (Repair.ROTATE_CREDENTIAL,),
    (Reason.RATE_LIMIT, "upstream"): (),
    (Reason.RATE_LIMIT, "in_flight"): (),
    (Reason.TIMEOUT, "pool_timeout"): (Repair.REBUILD_TRANSPORT,),
    (Reason.CONTEXT_OVERFLOW, None): (Repair.COMPACT,),
    (Reason.CONTEXT_OVERFLOW, "output_cap"): (Repair.REDUCE_MAX_TOKENS, Repair.COMPACT),
    (Reason.PAYLOAD_TOO_LARGE, None): (Repair.SHRINK_IMAGES, Repair.COMPACT),
    (Reason.IMAGE_TOO_LARGE, None): (Repair.SHRINK_IMAGES, Repair.DROP_IMAGES),
    (Reason.FORMAT_ERROR, "output_cap"): (Repair.REDUCE_MAX_TOKENS,),
    (Reason.FORMAT_ERROR, "tool_images"): (Repair.MOVE_TOOL_IMAGES,),
    (Reason.FORMAT_ERROR, "images"): (Repair.DROP_IMAGES,),
    (Reason.FORMAT_ERROR, "bad_image"): (Repair.DROP_IMAGES,),
    (Reason.FORMAT_ERROR, "image_count"): (Repair.DROP_IMAGES,),
    (Reason.THINKING_SIGNATURE, None): (Repair.DROP_THINKING_SIGNATURES,),
    (Reason.LONG_CONTEXT_TIER, None): (Repair.LOWER_CONTEXT_TIER, Repair.COMPACT),
    (Reason.OAUTH_LONG_CONTEXT_BETA_FORBIDDEN, None): (Repair.DROP_LONG_CONTEXT_BETA,),
    (Reason.LLAMA_CPP_GRAMMAR_PATTERN, None): (Repair.STRIP_GRAMMAR_PATTERNS,),
    (Reason.UNKNOWN, "truncated_tool_call"): (Repair.RAISE_MAX_TOKENS,),
})  # fmt: skip
"""Repairs in the order in which they are tried, cheapest first. A detail without a row has its reason's
row."""

SMALL_LIMITS: Mapping[tuple[Reason, str | None], int] = MappingProxyType({
    (Reason.UNKNOWN, None): 1,
    (Reason.RATE_LIMIT, "unsure"): 1,
    (Reason.UNKNOWN, "empty_answer"): 2,
    (Reason.UNKNOWN, "truncated_answer"): 1,
    (Reason.UNKNOWN, "truncated_tool_call"): 1,
    (Reason.SERVER_ERROR, "wrong_type"): 2,
    (Reason.SERVER_ERROR, "bad_json"): 2,
})  # fmt: skip
"""Plain retries of one call for failures that seldom pass by waiting; they count against `retries` too."""


def cures(reason: Reason, detail: str | None) -> tuple[Repair, ...]:
    """The row of `CURES` for a verdict; () where only time or another target can help."""
    return CURES.get((reason, detail), CURES.get((reason, None), ()))


def small_limit(reason: Reason, detail: str | None) -> int | None:
    """The row of `SMALL_LIMITS` for a verdict; None where `retries` alone bounds."""
    if (reason, detail) in SMALL_LIMITS:
        return SMALL_LIMITS[reason, detail]
    return SMALL_LIMITS.get((reason, None))
