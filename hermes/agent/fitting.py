"""One ask, fitted to whichever target is tried, with the repairs made so far."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from hermes.agent.credentials import Lease
from hermes.agent.images import IMAGE_LIMITS, ImageFit
from hermes.agent.targets import Ask, Target
from hermes.core.attachments import ImageLimits
from hermes.core.failures import Reason, Verdict
from hermes.core.transcript import AssistantItem, Item, ModelRequest, ToolResultItem, ToolSpec
from hermes.policy.compaction import Room, reserve_for
from hermes.policy.cures import Repair
from hermes.policy.estimate import (
    PRIOR,
    Calibration,
    certainty,
    frame_measure,
    prompt_measure,
    tokens,
    weigher,
)
from hermes.policy.trim import LEFT_OUT, SHORTEST_RESULT, inviolable, trim

MAX_OUTPUT, PLAIN_SCHEMAS, WINDOW = "max_output", "plain_schemas", "context_window"
"""What can be learned about a target: most output tokens, schemas without patterns, a smaller window."""
NO_BETA = "no_long_context_beta"
"""And: its account may not ask for the window beyond ``PLAIN_WINDOW``."""
PLAIN_WINDOW = 200_000
"""Tokens of a window that needs no beta feature."""


class Fit:
    """One ask, fitted to whichever target is tried, with the repairs made so far.

    ``known``: what was learned about a target by earlier calls; ``counts``: how it counts tokens.
    """

    def __init__(
        self,
        ask: Ask,
        begun: float = 0.0,
        known: Callable[[Target], Mapping[str, str]] = lambda target: {},
        counts: Callable[[Target], Calibration] = lambda target: PRIOR,
    ) -> None:
        self.begun = begun
        self._ask = ask
        self._items = ask.items
        self._known = known
        self._counts = counts
        self._most: int | None = None  # tokens of a whole prompt, after an overflow
        self._sent: tuple[tuple[Item, ...], tuple[ToolSpec, ...]] = (ask.items, ())
        self.beyond: int | None = None
        """The window that the last request exceeds for certain, though nothing more can be left out; else None."""
        self._made: dict[str, dict[str, str]] = {}
        self.max_output: int | None = None
        self.lease: Lease | None = None  # the key of the call under way
        self._images = ImageFit()
        self._spent: Counter[tuple[str, Repair]] = Counter()

    def request(self, target: Target, trim_share: float) -> ModelRequest:
        """The request for a target: trimmed to its window where that is known, and to what repairs left of it."""
        heeded = self._heeded(target)
        items = self._images.items(self._items, target, heeded)
        window, betas = _window(target, heeded)
        tools = self._ask.tools if target.tools else ()
        if PLAIN_SCHEMAS in heeded:
            tools = tuple(replace(spec, parameters=plain_schema(spec.parameters)) for spec in tools)
        wanted = self.max_output if self.max_output is not None else target.max_output
        if self._ask.max_output is not None:
            wanted = min(wanted or self._ask.max_output, self._ask.max_output)
        wanted = _least(wanted, heeded.get(MAX_OUTPUT))
        items = self._fitted(items, tools, target, window, wanted, trim_share)
        return ModelRequest(target.model, self._ask.system, items, tools, wanted, betas=betas)

    def _fitted(
        self, items: tuple[Item, ...], tools: tuple[ToolSpec, ...], target: Target, window: int | None,
        output: int | None, share: float,
    ) -> tuple[Item, ...]:  # fmt: skip
        calibration = self._counts(target)
        weigh, frame = weigher(calibration), tokens(frame_measure(self._ask.system, tools), calibration)
        limits = [] if self._most is None else [self._most - frame]
        if window is not None:
            limits.append(Room(window, frame, reserve_for(window, output), share).limit)
        if limits:
            items = trim(items, min(limits), weigh).items
        self._sent, self.beyond = (items, tools), None
        if window is not None and (frame + sum(map(weigh, items))) * certainty(calibration) > window:
            self.beyond = window
        return items

    def _heeded(self, target: Target) -> dict[str, str]:
        return {**self._known(target), **self._made.get(target.name, {})}

    def image_limits(self, target: Target) -> ImageLimits:
        """How large a picture of the request may be."""
        return self._images.limits(target, self._heeded(target))

    def impossible(self, target: Target, verdict: Verdict) -> frozenset[Repair]:
        """The repairs of pictures and of betas that would change nothing."""
        found = self._images.impossible(self._items, target, self._heeded(target), verdict)
        _, betas = _window(target, self._heeded(target))
        return found if betas else found | {Repair.DROP_LONG_CONTEXT_BETA}

    def repair_images(self, repair: Repair, target: Target, verdict: Verdict) -> None:
        """Makes one repair of pictures."""
        proved = self._images.make(repair, self._items, target, self._heeded(target), verdict)
        if repair is Repair.DROP_IMAGES:  # what was tried before it did not help
            self._made.get(target.name, {}).pop(IMAGE_LIMITS, None)
        for key, value in proved.items():
            self.made(target, key, value)

    async def compact(self, target: Target, verdict: Verdict) -> None:
        """After an overflow: the window that the error tells of, and in any case less than what was refused; the
        turn may have something shorter to send."""
        items, tools = self._sent
        calibration = self._counts(target)
        frame = tokens(frame_measure(self._ask.system, tools), calibration)
        refused = tokens(prompt_measure(self._ask.system, items, tools), calibration)
        sure = verdict.detail is None and (verdict.limit or 0) >= _LEAST_WINDOW
        window = verdict.limit if sure and verdict.limit else max(1, int(refused * _REFUSED))
        if verdict.reason is Reason.CONTEXT_OVERFLOW and verdict.detail is None:
            self.made(target, WINDOW, str(window))
        exact = sure and verdict.requested is not None
        self._most = int(refused * _REFUSED if exact else frame + (refused - frame) * _HALF)
        if self._ask.shorter is not None:
            self._items = await self._ask.shorter(min(window, self._most)) or self._items

    def compactable(self) -> bool:
        """Whether anything can still be left out of what was sent last."""
        items, _ = self._sent
        short = all(len(i.text) <= 2 * SHORTEST_RESULT for i in items if isinstance(i, ToolResultItem))
        return not short or len(inviolable(items)) < len(items) - (LEFT_OUT in items)

    def window(self, target: Target) -> int | None:
        """Tokens of prompt and answer together; None = unknown."""
        return _window(target, self._heeded(target))[0]

    def has_thinking(self) -> bool:
        """Whether the request holds signed thoughts."""
        return any(isinstance(item, AssistantItem) and item.opaque for item in self._items)

    def drop_thinking(self) -> None:
        """Leaves signed thoughts out of this request; the history keeps them."""
        self._items = tuple(
            replace(item, opaque=()) if isinstance(item, AssistantItem) and item.opaque else item
            for item in self._items
        )

    def made(self, target: Target, key: str, value: str) -> None:
        """A repair that holds for this target, also in later calls if this one succeeds."""
        self._made.setdefault(target.name, {})[key] = value

    def to_learn(self, target: Target) -> Mapping[str, str]:
        """What a success of this target proves."""
        return self._made.get(target.name, {})

    def spend(self, target: Target, repair: Repair) -> None:
        """A repair is made for the provider of ``target``."""
        self._spent[target.provider.name, repair] += 1

    def spent(self, target: Target, repair: Repair) -> int:
        """How often a repair was made for the provider of ``target`` in this call."""
        return self._spent[target.provider.name, repair]

    def heeds(self, target: Target, key: str) -> bool:
        """Whether the request is already made so, by a repair or by what was learned."""
        return key in self._known(target) or key in self._made.get(target.name, {})


_REFUSED, _HALF = 0.95, 0.5
"""Shares of what an overflow refused: the window is taken for the one where it is not stated; the other of the items
is sent next where the error does not tell how far off they were."""
_LEAST_WINDOW = 256
"""Tokens below which a stated number is not believed to be a window."""


def _window(target: Target, heeded: Mapping[str, str]) -> tuple[int | None, tuple[str, ...]]:
    """Tokens that may be sent, and the features to ask for: what lies beyond ``PLAIN_WINDOW`` needs its beta."""
    window = _least(target.context_window, heeded.get(WINDOW))
    if not target.betas or window is None or window <= PLAIN_WINDOW:
        return window, ()
    return (PLAIN_WINDOW, ()) if NO_BETA in heeded else (window, target.betas)


def _least(own: int | None, learned: str | None) -> int | None:
    if learned is None:
        return own
    return int(learned) if own is None else min(own, int(learned))


REFUSED_KEYWORDS = frozenset({"pattern", "format", "patternProperties", "propertyNames", "contentEncoding"})
"""JSON schema keywords that grammar compilers of local servers refuse or half know; none is needed to call a tool."""
_NAMES = frozenset({"properties", "$defs", "definitions"})
_LITERALS = frozenset({"enum", "const", "default", "examples"})


def plain_schema(schema: Any) -> Any:
    """``schema`` without REFUSED_KEYWORDS; a property that is *named* so stays, and so do literals."""
    if isinstance(schema, list):
        return [plain_schema(one) for one in schema]
    if not isinstance(schema, Mapping):
        return schema
    plain: dict[str, Any] = {}
    for key, value in schema.items():
        if key in REFUSED_KEYWORDS:
            continue
        if key in _NAMES and isinstance(value, Mapping):
            plain[key] = {name: plain_schema(one) for name, one in value.items()}
        else:
            plain[key] = value if key in _LITERALS else plain_schema(value)
    return plain
