"""How long to wait before the next attempt when the upstream does not say."""

from __future__ import annotations

import math


def backoff(retry: int, u: float, *, base: float = 5.0, cap: float = 60.0, ratio: float = 0.5) -> float:
    """Seconds before retry number `retry` (1 = the first), jittered below min(cap, base · 2^(retry - 1)).

    With `ratio` 0.5 this is "equal jitter": sleep = temp / 2 + random(0, temp / 2), temp = min(cap, base ·
    2^n); ratio 1 is "full jitter" (Marc Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog,
    2015). The result is never above `cap`, never negative, and finite. `u` in [0, 1).
    """
    if retry < 1 or base <= 0.0 or cap <= 0.0:
        return 0.0
    full = min(cap, base * 2.0 ** min(retry - 1, 60))
    share = min(max(ratio, 0.0), 1.0)
    draw = min(max(u, 0.0), 1.0) if math.isfinite(u) else 1.0
    return full * (1.0 - share) + full * share * draw
