"""The pictures of one ask, as each target may have them: whole, smaller, elsewhere, or told in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hermes.agent.targets import Target
from hermes.core.attachments import ImageLimits, Pictures
from hermes.core.failures import Reason, Verdict
from hermes.core.transcript import ImageRef, Item, ModelRequest, images_of
from hermes.policy.cures import Repair
from hermes.policy.images import (
    exceeds,
    has_tool_images,
    limits_of,
    newest_shown,
    only_with,
    read_limits,
    smaller_of,
    with_tool_images_moved,
    without_images,
    written,
)

NO_IMAGES, TOOL_IMAGES, IMAGE_LIMITS = "no_images", "tool_images", "image_limits"
"""What can be learned about a target and pictures: it takes none, none in tool results, none above a size."""


class ImageFit:
    """Repairs that touch pictures, made so far in one call. ``heeded``: what is known and was made of the target."""

    def __init__(self) -> None:
        self._newest: dict[str, int] = {}  # targets that are shown only so many
        self._smaller: dict[str, ImageLimits] = {}

    def items(self, items: tuple[Item, ...], target: Target, heeded: Mapping[str, str]) -> tuple[Item, ...]:
        """``items`` as the target may have them."""
        if not images_of(items):
            return items
        if not target.images or NO_IMAGES in heeded:
            return without_images(items)
        items = without_images(items, newest_shown(len(images_of(items)), target.most_images))
        if target.name in self._newest:
            items = without_images(items, self._newest[target.name])
        return with_tool_images_moved(items) if TOOL_IMAGES in heeded else items

    def limits(self, target: Target, heeded: Mapping[str, str]) -> ImageLimits:
        """How large a picture may be."""
        own = self._smaller.get(target.name, ImageLimits())
        return smaller_of(own, read_limits(heeded.get(IMAGE_LIMITS, "")))

    def impossible(
        self, items: tuple[Item, ...], target: Target, heeded: Mapping[str, str], verdict: Verdict
    ) -> frozenset[Repair]:
        """The repairs of pictures that would change nothing."""
        shown = self.items(items, target, heeded)
        images, without = images_of(shown), set()
        if not images:
            without.add(Repair.DROP_IMAGES)
        if not self._would_shrink(images, target, heeded, verdict):
            without.add(Repair.SHRINK_IMAGES)
        if not has_tool_images(shown):
            without.add(Repair.MOVE_TOOL_IMAGES)
        return frozenset(without)

    def _would_shrink(
        self, images: tuple[ImageRef, ...], target: Target, heeded: Mapping[str, str], verdict: Verdict
    ) -> bool:
        now, wanted = self.limits(target, heeded), limits_of(verdict, images)
        return smaller_of(now, wanted) != now and any(exceeds(image, wanted) for image in images)

    def make(
        self, repair: Repair, items: tuple[Item, ...], target: Target, heeded: Mapping[str, str], verdict: Verdict
    ) -> dict[str, str]:
        """Makes one repair; what a success of the call would prove about the target."""
        match repair:
            case Repair.SHRINK_IMAGES:
                images = images_of(self.items(items, target, heeded))
                limits = smaller_of(self.limits(target, heeded), limits_of(verdict, images))
                self._smaller[target.name] = limits
                # how much fits into one request says nothing about the next one's pictures
                return {IMAGE_LIMITS: written(limits)} if verdict.reason is Reason.IMAGE_TOO_LARGE else {}
            case Repair.DROP_IMAGES:
                self._newest[target.name] = (verdict.limit or 0) if verdict.detail == "image_count" else 0
                takes_none = verdict.reason is Reason.FORMAT_ERROR and verdict.detail == "images"
                return {NO_IMAGES: "1"} if takes_none else {}
            case _:
                return {TOOL_IMAGES: "moved"}


async def with_pictures(request: ModelRequest, pictures: Pictures | None, limits: ImageLimits) -> ModelRequest:
    """``request`` with the bytes of its pictures; one that is gone is told in words."""
    wanted = images_of(request.items)
    if not wanted:
        return request
    found = await pictures.load(wanted, limits) if pictures is not None else {}
    if len(found) == len(wanted):
        return replace(request, images=found)
    return replace(request, items=only_with(request.items, found), images=found)
