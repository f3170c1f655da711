"""What pictures cost, how small they must become, and requests without them or with them elsewhere."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.core.attachments import ImageLimits
from hermes.core.failures import CallContext, FailureFacts, FaultKind, Reason
from hermes.core.transcript import (
    AssistantItem,
    ImageRef,
    ToolCall,
    ToolResultItem,
    UserItem,
    dump_item,
    images_of,
    load_item,
)
from hermes.policy.classify import classify
from hermes.policy.images import (
    FROM_TOOLS,
    encoded_size,
    exceeds,
    image_tokens,
    known_to_see,
    limits_of,
    newest_shown,
    only_with,
    read_limits,
    smaller_of,
    target_size,
    with_tool_images_moved,
    without_images,
    written,
)


def ref(name: str = "a", width: int = 100, height: int = 100, size: int = 1000) -> ImageRef:
    return ImageRef(name * 64, "image/png", size, width, height)


@pytest.mark.parametrize(
    ("width", "height", "tokens"),
    [(10, 10, 85), (750, 100, 100), (1568, 1568, 3278), (15680, 15680, 3278), (8000, 400, 164)],
)
def test_a_picture_costs_its_pixels_after_the_vendors_own_scaling(width: int, height: int, tokens: int) -> None:
    assert image_tokens(ref(width=width, height=height)) == tokens


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("image exceeds 5 MB maximum: 6500712 bytes > 5242880 bytes", ImageLimits(5242880, 2000)),
        ("At least one of the image dimensions exceed max allowed size: 8000 pixels", ImageLimits(None, 2000)),
        (
            "At least one of the image dimensions exceed max allowed size for many-image requests: 1500 pixels",
            ImageLimits(None, 1500),
        ),
        ("Image too large: maximum 33177600 pixels", ImageLimits(None, 2000, 33177600)),
        (
            "Image 0 failed: Image exceeds the maximum allowed total pixels. Current dimensions: 4634x12324 = "
            "57109416 pixels. Maximum allowed: 36000000 pixels.",
            ImageLimits(None, 2000, 36000000),
        ),
        ("Image size exceeds 20MB limit", ImageLimits(20 * 2**20, 2000)),
        (
            "The image length and width do not meet the model restrictions. [height:9 or width:10000 must be less "
            "than 1024]",
            ImageLimits(None, 1024),
        ),
        ("The image is too large", ImageLimits(2000, 750)),
    ],
)
def test_the_number_that_an_error_states_is_the_one_that_is_kept(message: str, expected: ImageLimits) -> None:
    facts = FailureFacts(FaultKind.HTTP_STATUS, status=400, message=message, body=message)
    verdict = classify(facts, CallContext())
    assert verdict.reason is Reason.IMAGE_TOO_LARGE
    assert limits_of(verdict, [ref(width=1000, height=800, size=3000)]) == expected


@given(st.integers(1, 40_000), st.integers(1, 40_000), st.integers(1, 5000), st.integers(1, 10**8))
def test_a_smaller_picture_is_within_its_limits_and_never_larger(w: int, h: int, side: int, pixels: int) -> None:
    width, height = target_size(w, h, ImageLimits(side=side, pixels=pixels))
    assert 1 <= width <= w
    assert 1 <= height <= h
    assert max(width, height) <= side
    assert width * height <= pixels or 1 in (width, height)


@given(*[st.none() | st.integers(0, 10**9)] * 3)
def test_limits_can_be_learned_and_read_again(encoded: int | None, side: int | None, pixels: int | None) -> None:
    limits = ImageLimits(encoded, side, pixels)
    assert read_limits(written(limits)) == limits
    assert smaller_of(limits, ImageLimits()) == limits


@pytest.mark.parametrize("text", ["", "1/2", "a/b/c", "1/2/3/4", "-1/2/3", "²/1/1"])
def test_what_is_no_limit_is_none(text: str) -> None:
    assert read_limits(text) == ImageLimits()


@given(st.integers(0, 10**7))
def test_the_size_in_base64_is_exact(size: int) -> None:
    assert encoded_size(size) == -(-size // 3) * 4


def test_only_what_is_over_a_limit_has_to_shrink() -> None:
    assert exceeds(ref(size=3001), ImageLimits(encoded=4000))
    assert not exceeds(ref(size=3000), ImageLimits(encoded=4000))
    assert exceeds(ref(width=101), ImageLimits(side=100))
    assert not exceeds(ref(), ImageLimits(side=100, pixels=10_000))
    assert exceeds(ref(), ImageLimits(pixels=9_999))


def test_an_item_with_pictures_is_stored_without_their_bytes_and_read_again() -> None:
    for item in (UserItem("x", images=(ref(), ref("b"))), ToolResultItem("c", "t", "x", images=(ref(),))):
        assert load_item(dump_item(item)) == item
    assert load_item('{"t":"u","x":"of an earlier version"}') == UserItem("of an earlier version")
    assert dump_item(UserItem("x")) == '{"t":"u","x":"x"}'


HISTORY = (
    UserItem("look", images=(ref("a"), ref("b"))),
    AssistantItem("", (ToolCall("1", "t", "{}"), ToolCall("2", "t", "{}"))),
    ToolResultItem("1", "t", "one", images=(ref("c"),)),
    ToolResultItem("2", "t", "two", images=(ref("d"),)),
    AssistantItem("done"),
)


def test_pictures_are_told_in_words_each_in_its_place() -> None:
    bare = without_images(HISTORY)
    assert images_of(bare) == ()
    assert [item.text.count("was not shown it") for item in bare] == [2, 0, 1, 1, 0]


def test_the_newest_pictures_stay_where_so_many_are_taken() -> None:
    assert [image.sha256[0] for image in images_of(without_images(HISTORY, 2))] == ["c", "d"]
    assert without_images(HISTORY, 9) == HISTORY


@pytest.mark.parametrize(
    ("count", "most", "shown"),
    [(0, 20, 0), (20, 20, 20), (21, 20, 11), (30, 20, 20), (31, 20, 11), (5, 0, 0), (3, 1, 1), (100, 20, 20)],
)
def test_of_too_many_pictures_the_oldest_leave_several_at_once(count: int, most: int, shown: int) -> None:
    assert newest_shown(count, most) == shown


@given(st.integers(0, 300), st.integers(0, 50))
def test_never_more_pictures_are_shown_than_may_be(count: int, most: int) -> None:
    assert 0 <= newest_shown(count, most) <= min(count, most)


def test_a_picture_whose_bytes_are_gone_is_told_in_words() -> None:
    kept = only_with(HISTORY, {ref("a").sha256: 1, ref("d").sha256: 1})
    assert [image.sha256[0] for image in images_of(kept)] == ["a", "d"]


def test_pictures_of_tools_follow_all_results_of_their_step() -> None:
    moved = with_tool_images_moved(HISTORY)
    assert moved[2:5] == (
        ToolResultItem("1", "t", "one"), ToolResultItem("2", "t", "two"),
        UserItem(FROM_TOOLS, True, (ref("c"), ref("d"))),
    )  # fmt: skip
    assert with_tool_images_moved(HISTORY[:4])[-1] == moved[4]
    assert images_of(moved) == images_of(HISTORY)


@pytest.mark.parametrize(
    "model",
    ["gpt-5-mini", "gpt-4o", "openai/gpt-4.1", "o4-mini", "claude-sonnet-4-5", "claude-3-haiku", "gemini-2.5-pro",
     "qwen2.5-vl-7b", "llava:13b", "google/gemma-3-27b"],
)  # fmt: skip
def test_families_that_see_are_known_by_name(model: str) -> None:
    assert known_to_see(model)


@pytest.mark.parametrize(
    "model", ["gpt-3.5-turbo", "gpt-4", "o1-mini", "o3-mini", "deepseek-chat", "rehearsal", "some-model", "llama3"]
)
def test_all_others_are_taken_for_blind(model: str) -> None:
    assert not known_to_see(model)
