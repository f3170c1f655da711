"""Each repair of pictures over both SDKs: what is sent, the exact number of requests, and what it teaches."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.agent.targets import GaveUp
from hermes.core.transcript import UserItem
from hermes.simulators.faults import ApiError, HalfToolCall
from hermes.simulators.images import ImageRules
from hermes.store.database import InlineDatabase
from tests.pictures import noise, picture, size_of
from tests.wire.recovery.bench import bench
from tests.wire.repairs.gallery import gallery, with_tool_image

pytestmark = [pytest.mark.wire, pytest.mark.parametrize("dialect", ["openai", "anthropic"])]


async def test_a_picture_is_sent_as_it_is_in_one_request(dialect: str, tmp_path: Path) -> None:
    content = picture(40, 30, "JPEG")
    async with gallery(dialect, tmp_path) as it:
        assert await it.look(await it.hang(content)) == "You said: «look»"
        [[shown]] = it.shown()
        assert (shown.mime, shown.content) == ("image/jpeg", content)


async def test_too_many_bytes_are_made_fewer_in_one_more_request_and_remembered(dialect: str, tmp_path: Path) -> None:
    big, limit = noise(300, 300), 60_000 if dialect == "anthropic" else 2**20
    big = big if dialect == "anthropic" else noise(700, 700)
    rules = ImageRules(encoded=limit) if dialect == "anthropic" else ImageRules(decoded=limit)
    disk = InlineDatabase()
    async with gallery(dialect, tmp_path, disk, images=rules) as it:
        ref = await it.hang(big)
        assert await it.look(ref) == "You said: «look»"
        first, second = it.shown()
        assert first[0].content == big
        assert len(second[0].data) <= limit
        assert size_of(second[0].content or b"") == size_of(big), "the pixels are as many"
        await it.look(ref)
        assert len(it.sim.requests) == 3, "learned"
        assert it.facts() == {"image_limits": f"{limit}/2000/-"}
    async with gallery(dialect, tmp_path, disk, images=rules) as it:
        await it.look(ref)
        assert len(it.sim.requests) == 1, "learned across a restart"


async def test_too_many_pixels_are_made_fewer_in_one_more_request_and_remembered(dialect: str, tmp_path: Path) -> None:
    rules = ImageRules(side=500) if dialect == "anthropic" else ImageRules(pixels=250_000)
    async with gallery(dialect, tmp_path, images=rules) as it:
        ref = await it.hang(picture(1000, 400))
        await it.look(ref)
        [_, [small]] = it.shown()
        width, height = size_of(small.content or b"")
        assert (width, height) == (500, 200) if dialect == "anthropic" else width * height <= 250_000
        assert width / height == pytest.approx(2.5, rel=0.02)
        await it.look(ref)
        assert len(it.sim.requests) == 3


async def test_many_pictures_have_a_smaller_limit_and_meet_it_in_one_more_request(dialect: str, tmp_path: Path) -> None:
    rules = ImageRules(side=8000, many=3, many_side=2000)
    async with gallery(dialect, tmp_path, images=rules) as it:
        refs = [await it.hang(picture(2100 + n, 20, "JPEG")) for n in range(4)]
        await it.look(*refs)
        sides = [max(size_of(shown.content or b"")) for shown in it.shown()[1]]
        assert len(it.sim.requests) == 2
        assert sides == [2000] * 4


async def test_a_picture_that_stays_too_large_is_left_out_in_a_third_request_and_nothing_is_learned(
    dialect: str, tmp_path: Path
) -> None:
    refusal = "messages.0.content.0.image.source.base64: image exceeds 5 MB maximum: 160000 bytes > 60000 bytes"
    async with gallery(dialect, tmp_path) as it:
        ref = await it.hang(noise(200, 200))
        it.sim.script(ApiError(400, refusal), ApiError(400, refusal))
        assert "«look»" in await it.look(ref)
        assert [len(pictures) for pictures in it.shown()] == [1, 1, 0]
        assert "was not shown it" in str(it.sim.requests[2].body)
        assert it.facts() == {}


async def test_a_limit_that_the_picture_keeps_already_costs_no_request_for_making_it_smaller(
    dialect: str, tmp_path: Path
) -> None:
    refusal = "messages.0.content.0.image.source.base64: image exceeds 5 MB maximum: 6500712 bytes > 5242880 bytes"
    async with gallery(dialect, tmp_path) as it:
        it.sim.script(ApiError(400, refusal))
        await it.look(await it.hang(picture()))
        assert [len(pictures) for pictures in it.shown()] == [1, 0]


async def test_a_request_that_is_too_large_is_sent_with_smaller_pictures_and_nothing_is_learned(
    dialect: str, tmp_path: Path
) -> None:
    async with gallery(dialect, tmp_path, body_limit=200_000) as it:
        ref = await it.hang(noise(300, 300))
        await it.look(ref)
        first, second = it.sim.requests
        assert second.size < 200_000 < first.size
        assert it.facts() == {}


async def test_a_model_without_eyes_is_asked_without_pictures_and_that_is_remembered(
    dialect: str, tmp_path: Path
) -> None:
    async with gallery(dialect, tmp_path, images=ImageRules(taken=False)) as it:
        ref = await it.hang(picture())
        await it.look(ref)
        await it.look(ref)
        assert [len(pictures) for pictures in it.shown()] == [1, 0, 0]
        assert it.facts() == {"no_images": "1"}


async def test_a_broken_picture_in_the_history_costs_one_more_request_and_not_the_session(
    dialect: str, tmp_path: Path
) -> None:
    async with gallery(dialect, tmp_path) as it:
        ref = await it.hang(picture())
        [file] = (tmp_path / "media").glob("*/*")
        file.write_bytes(file.read_bytes()[:-30])
        await it.look(ref)
        assert [len(pictures) for pictures in it.shown()] == [1, 0]
        assert it.facts() == {}


async def test_where_one_picture_is_the_most_the_newest_is_shown(dialect: str, tmp_path: Path) -> None:
    async with gallery(dialect, tmp_path) as it:
        older, newer = await it.hang(picture()), await it.hang(picture(50, 60))
        it.sim.script(ApiError(400, "At most 1 image(s) may be provided in one request."))
        await it.look(newer, history=(UserItem("this?", images=(older,)),))
        assert [len(pictures) for pictures in it.shown()] == [2, 1]
        assert size_of(it.shown()[1][0].content or b"") == (50, 60)


async def test_pictures_move_out_of_tool_results_where_they_are_refused_there(dialect: str, tmp_path: Path) -> None:
    async with gallery(dialect, tmp_path, images=ImageRules(in_tool_results=False)) as it:
        items = with_tool_image(await it.hang(picture()))
        await it.ask(*items)
        [inside], [beside] = it.shown()
        assert (inside.in_tool_result, beside.in_tool_result) == (True, False)
        await it.ask(*items)
        assert len(it.sim.requests) == 3
        assert it.facts() == {"tool_images": "moved"}


async def test_pictures_stay_in_tool_results_where_they_are_taken(dialect: str, tmp_path: Path) -> None:
    async with gallery(dialect, tmp_path, images=ImageRules()) as it:
        await it.ask(*with_tool_image(await it.hang(picture())))
        [[shown]] = it.shown()
        assert shown.in_tool_result


async def test_a_model_that_is_known_not_to_see_is_never_shown_a_picture(dialect: str, tmp_path: Path) -> None:
    async with gallery(dialect, tmp_path, target={"images": False}) as it:
        await it.look(await it.hang(picture()))
        assert it.shown() == [[]]
        assert "was not shown it" in str(it.sim.requests[0].body)


async def test_a_repair_of_pictures_is_not_tried_without_one(dialect: str, tmp_path: Path) -> None:
    async with gallery(dialect, tmp_path) as it:
        it.sim.faults.add(ApiError(400, "image exceeds 5 MB maximum: 6500712 bytes > 5242880 bytes"), times=None)
        assert isinstance(await it.ask(UserItem("hi")), GaveUp)
        assert len(it.sim.requests) == 1


async def test_a_tool_call_that_the_output_limit_cut_off_is_asked_for_with_twice_the_limit(dialect: str) -> None:
    async with bench(dialect) as it:
        it.sim.faults.add(HalfToolCall(finish="length"))
        assert await it.answer() == "You said: «hello»"
        assert [request.body["max_tokens"] for request in it.sim.requests] == [8000, 16000]
