"""One ask with pictures, fitted to each target; and the repairs that are offered for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from hermes.agent.fitting import Fit
from hermes.agent.images import ImageFit
from hermes.agent.repairs import LearnedBook, Repairs
from hermes.agent.targets import Ask, Target
from hermes.core.failures import Reason, Verdict
from hermes.core.ports import Provider
from hermes.core.transcript import (
    ImageRef,
    Item,
    ModelReply,
    ModelRequest,
    ToolResultItem,
    UserItem,
    images_of,
)
from hermes.policy.cures import Repair
from hermes.policy.recovery import RecoveryPolicy, RecoveryTarget
from hermes.runtime.clock import SystemClock

BETA = "context-1m-2025-08-07"
TOO_LARGE = Verdict(Reason.IMAGE_TOO_LARGE, "rule", "bytes", limit=1000)
IMAGE_REPAIRS = frozenset({Repair.SHRINK_IMAGES, Repair.DROP_IMAGES, Repair.MOVE_TOOL_IMAGES})


class Nobody:
    """A provider that is never asked."""

    name = "main"

    async def complete(self, request: ModelRequest, on_text: Callable[[str], None]) -> ModelReply:
        raise AssertionError("nobody asks")

    async def rebuild(self) -> None:
        """Nothing to rebuild."""

    async def aclose(self) -> None:
        """Nothing to close."""


def target(model: str = "m", **more: object) -> Target:
    provider: Provider = Nobody()
    return Target(provider, model, **{"images": True, **more})  # type: ignore[arg-type]


def ref(number: int, size: int = 900) -> ImageRef:
    return ImageRef(f"{number:064x}", "image/png", size, 100, 100)


def fit(*items: Item, known: Mapping[str, str] | None = None) -> Fit:
    return Fit(Ask("", items, ()), 0.0, lambda target: known or {})


LOOK = UserItem("look", images=(ref(1),))


@pytest.mark.parametrize(
    ("images", "known", "shown"),
    [(True, {}, 1), (False, {}, 0), (True, {"no_images": "1"}, 0), (True, {"tool_images": "moved"}, 1)],
)
def test_a_target_is_shown_what_it_takes(images: bool, known: dict[str, str], shown: int) -> None:
    request = fit(LOOK, known=known).request(target(images=images), 1.0)
    assert len(images_of(request.items)) == shown


def test_a_target_without_eyes_costs_the_one_with_eyes_nothing() -> None:
    it = fit(LOOK)
    assert images_of(it.request(target("blind", images=False), 1.0).items) == ()
    assert len(images_of(it.request(target("seeing"), 1.0).items)) == 1


def test_of_a_long_conversation_the_newest_pictures_are_shown() -> None:
    items = tuple(UserItem(str(n), images=(ref(n),)) for n in range(25))
    shown = images_of(fit(*items).request(target(most_images=20), 1.0).items)
    assert shown == tuple(ref(n) for n in range(10, 25))


@pytest.mark.parametrize(
    ("window", "known", "betas"),
    [
        (1_000_000, {}, (BETA,)), (200_000, {}, ()), (1_000_000, {"no_long_context_beta": "1"}, ()),
        (1_000_000, {"context_window": "200000"}, ()), (None, {}, ()),
    ],
)  # fmt: skip
def test_the_beta_is_asked_for_where_the_window_needs_it(
    window: int | None, known: dict[str, str], betas: tuple[str, ...]
) -> None:
    request = fit(UserItem("hi"), known=known).request(target(context_window=window, betas=(BETA,)), 1.0)
    assert request.betas == betas


def test_without_the_beta_no_more_is_sent_than_the_plain_window_takes() -> None:
    items = tuple(UserItem("word " * 8000) for _ in range(40))
    wide = target(context_window=1_000_000, betas=(BETA,))
    assert len(fit(*items).request(wide, 0.75).items) == 40
    narrow = fit(*items, known={"no_long_context_beta": "1"}).request(wide, 0.75).items
    assert sum(len(item.text) for item in narrow) < 200_000 * 5


@pytest.mark.parametrize(
    ("items", "target_", "verdict", "offered"),
    [
        ((UserItem("hi"),), target(), TOO_LARGE, set()),
        ((LOOK,), target(images=False), TOO_LARGE, set()),
        ((LOOK,), target(), TOO_LARGE, {Repair.SHRINK_IMAGES, Repair.DROP_IMAGES}),
        ((LOOK,), target(), Verdict(Reason.IMAGE_TOO_LARGE, "rule", "bytes", limit=9000), {Repair.DROP_IMAGES}),
        (
            (ToolResultItem("c", "t", "x", images=(ref(1),)),), target(), TOO_LARGE,
            {Repair.SHRINK_IMAGES, Repair.DROP_IMAGES, Repair.MOVE_TOOL_IMAGES},
        ),
    ],
)  # fmt: skip
def test_only_repairs_that_change_something_are_offered(
    items: tuple[Item, ...], target_: Target, verdict: Verdict, offered: set[Repair]
) -> None:
    every = RecoveryPolicy((RecoveryTarget("main/m"),), available=frozenset(Repair))
    repairs = Repairs(LearnedBook(SystemClock()))
    possible = repairs.possible(every, target_, fit(*items), verdict).available
    assert possible & IMAGE_REPAIRS == offered
    assert Repair.DROP_LONG_CONTEXT_BETA not in possible


def test_a_picture_is_not_made_smaller_twice_for_one_limit() -> None:
    it, to = ImageFit(), target()
    assert Repair.SHRINK_IMAGES not in it.impossible((LOOK,), to, {}, TOO_LARGE)
    proved = it.make(Repair.SHRINK_IMAGES, (LOOK,), to, {}, TOO_LARGE)
    assert proved == {"image_limits": "1000/2000/-"}
    assert Repair.SHRINK_IMAGES in it.impossible((LOOK,), to, {}, TOO_LARGE)
    assert Repair.SHRINK_IMAGES in ImageFit().impossible((LOOK,), to, proved, TOO_LARGE)
