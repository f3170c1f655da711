"""Photos, albums, documents and recordings through whole turns, killed at each step (R22)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from hermes.core.delivery import DeliveryFacts, Sent
from hermes.core.events import AttachmentRef
from hermes.core.transcript import ModelRequest, UserItem, load_item
from tests.pictures import picture
from tests.simulation.outside import PLATFORM, answer, network_down, status, tool_call
from tests.simulation.test_kills import check_promises
from tests.simulation.world import START, World

pytestmark = pytest.mark.simulation
Make = Callable[..., World]

SEEING: dict[str, Any] = {
    "providers": {
        "sim": {
            "kind": "openai", "base_url": "http://sim.invalid/v1",
            "models": {"m": {"context_window": 100_000, "images": True}},
        }
    }
}  # fmt: skip
RED, BLUE = picture(40, 30), picture(20, 60, "JPEG", "blue")


def with_(settings: dict[str, Any], **gateway: Any) -> dict[str, Any]:
    return {**settings, "gateway": gateway}


def send(world: World, text: str, *files: tuple[AttachmentRef, bytes], **more: Any) -> str:
    for ref, content in files:
        world.server.files[ref.ref] = content
    return world.server.say("7", text, files=[ref for ref, _ in files], **more)


def photo(name: str, content: bytes = RED) -> tuple[AttachmentRef, bytes]:
    return AttachmentRef("photo", name, None, "image/jpeg", len(content)), content


def document(name: str, content: bytes, mime: str | None = None) -> tuple[AttachmentRef, bytes]:
    return AttachmentRef("document", f"file-{name}", name, mime, len(content)), content


def asked(request: ModelRequest) -> UserItem:
    [last] = [item for item in request.items if isinstance(item, UserItem)][-1:]
    return last


def shown(request: ModelRequest) -> list[bytes]:
    """The bytes of the pictures that the model was shown with the last words, in order."""
    return [request.images[image.sha256].data for image in asked(request).images]


def test_a_photo_reaches_a_model_that_sees_with_its_caption(make: Make) -> None:
    world = make(settings=SEEING)
    send(world, "what is this?", photo("a"))
    world.run()
    [request] = world.model.requests
    assert shown(request) == [RED]
    sha = hashlib.sha256(RED).hexdigest()
    assert asked(request).text == f"what is this?\n[photo, 40×30, attachment {sha[:12]}]"
    assert len(world.heard()) == 1
    assert world.outcomes()[0][1] == "answered"
    [(item,)] = world.rows("SELECT item FROM messages ORDER BY seq LIMIT 1")
    assert len(item) < 300, "the bytes are not in the transcript"
    assert world.rows("SELECT sha256, state FROM attachments") == [(sha, "fetched")]


def test_a_model_that_does_not_see_is_told_in_words(make: Make) -> None:
    world = make()
    send(world, "what is this?", photo("a"))
    world.run()
    [request] = world.model.requests
    assert request.images == {}
    assert asked(request).images == ()
    assert "this model was not shown it" in asked(request).text


def test_a_fallback_without_eyes_is_asked_with_words_in_place_of_the_photo(make: Make) -> None:
    world = make([status(500, "broken")] * 9, spare=[answer("I cannot see it.")], settings=SEEING)
    send(world, "what is this?", photo("a"))
    world.run(300)
    assert world.heard() == ["I cannot see it."]
    assert len(world.model.requests[0].images) == 1
    assert world.spare is not None
    assert world.spare.requests[0].images == {}
    assert "was not shown it" in asked(world.spare.requests[0]).text


def test_an_album_is_one_turn_with_all_its_photos_in_order(make: Make) -> None:
    world = make(settings=SEEING)
    send(world, "which is better?", photo("a", RED), album="album-1")
    send(world, "", photo("b", BLUE), album="album-1")
    world.run()
    [request] = world.model.requests
    assert shown(request) == [RED, BLUE]
    assert [outcome for _, outcome in world.outcomes()] == ["merged_into", "answered"]


def test_the_next_turn_shows_the_photo_again_without_fetching_it(make: Make) -> None:
    world = make(settings=SEEING)
    send(world, "look", photo("a"))
    world.run()
    world.say("and now?")
    world.run()
    assert [next(iter(request.images.values())).data for request in world.model.requests] == [RED, RED]
    assert world.server.downloads == ["a"]


def test_what_was_said_before_is_in_the_prompt_as_it_was(make: Make) -> None:
    world = make(settings=SEEING)
    send(world, "look", photo("a"))
    world.run()
    world.say("and now?")
    world.run()
    first, second = world.model.requests
    assert second.items[: len(first.items)] == first.items


POINTS = (
    "before_t1", "after_t1", "after_offset", "after_claim", "after_download", "after_attachment",
    "after_step_intent", "before_t2", "after_t2", "sending_before_bytes", "sending_after_bytes",
)  # fmt: skip


@pytest.mark.parametrize("point", POINTS)
def test_killed_at_each_step_a_message_with_a_photo_and_a_document_is_answered_once(make: Make, point: str) -> None:
    world = make(settings=SEEING)
    world.checkpoints.at = point
    send(world, "first", photo("a"), document("notes.txt", b"the word is heron", "text/plain"))
    world.run(120)
    assert world.kills == 1, f"{point} was never reached"
    request = world.model.requests[-1]
    assert shown(request) == [RED]
    assert "the word is heron" in asked(request).text
    assert world.outcomes()[0][1] == "answered"
    check_promises(world, {"7": ["first"]})
    assert len(set(world.server.downloads)) == 2
    if point in ("after_step_intent", "before_t2", "after_t2"):
        assert len(world.server.downloads) == 2, "what is on disk is not fetched again"


def test_killed_in_a_download_the_message_is_taken_up_again(make: Make) -> None:
    world = make(settings=SEEING)
    world.server.download_seconds = 5.0
    send(world, "look", photo("a"))
    world.run(3).kill().run(60)
    assert shown(world.model.requests[-1]) == [RED]
    assert len(world.heard()) == 1


def test_a_file_that_cannot_be_had_is_one_line_and_the_message_is_answered(make: Make) -> None:
    world = make(settings=SEEING)
    wrong = DeliveryFacts(PLATFORM, "BadRequest", 400, message="wrong file_id", sent=Sent.REFUSED)
    world.server.download_failures.append(wrong)
    send(world, "read it", document("a.txt", b"text"))
    world.run()
    told = "[document a.txt could not be fetched: the platform did not give it out]"
    assert told in asked(world.model.requests[0]).text
    assert world.outcomes()[0][1] == "answered"
    assert world.rows("SELECT state FROM attachments") == [("failed",)]


def test_a_network_that_is_down_for_a_moment_costs_a_second_try(make: Make) -> None:
    world = make(settings=SEEING)
    world.server.download_failures.append(network_down())
    send(world, "look", photo("a"))
    world.run()
    assert world.server.downloads == ["a", "a"]
    assert shown(world.model.requests[0]) == [RED]


def test_a_download_that_hangs_is_given_up_in_time_and_delays_no_other_chat(make: Make) -> None:
    world = make(settings=with_(SEEING, media_timeout=20))
    world.server.download_seconds = 3600.0
    send(world, "look", photo("a"))
    world.say("hello", chat="8")
    world.run(10)
    assert len(world.heard("8")) == 1
    assert world.heard() == []
    world.run(30)
    assert "it took longer than 20 s" in asked(world.model.requests[-1]).text
    assert len(world.heard()) == 1


def test_more_files_than_one_chat_may_fetch_at_once_leave_room_for_another(make: Make) -> None:
    world = make(settings=with_(SEEING, media_concurrency=2, media_timeout=20))
    world.server.download_seconds = 10.0
    send(world, "many", *(photo(f"m{n}", picture(20 + n, 20)) for n in range(4)))
    send_other = AttachmentRef("photo", "other", None, "image/png", len(BLUE))
    world.server.files["other"] = BLUE
    world.server.say("8", "mine", files=[send_other])
    world.run(15)
    assert len(world.heard("8")) == 1
    world.run(60)
    assert len(shown(world.model.requests[-1])) == 4


@pytest.mark.parametrize("stated", [True, False])
def test_a_file_above_the_bound_is_not_kept_whatever_the_platform_says_of_it(make: Make, stated: bool) -> None:
    world = make(settings=with_(SEEING, media_max_bytes=1000))
    ref = AttachmentRef("document", "big", "big.txt", "text/plain", 5000 if stated else None)
    send(world, "read it", (ref, b"x" * 5000))
    world.run()
    text = asked(world.model.requests[0]).text
    assert "could not be fetched" in text
    assert world.server.downloads == ([] if stated else ["big"])
    assert world.rows("SELECT sha256 FROM attachments") == [(None,)]


def test_stop_ends_a_turn_that_is_fetching(make: Make) -> None:
    world = make(settings=SEEING)
    world.server.download_seconds = 50.0
    send(world, "look", photo("a"))
    world.run(5)
    world.say("/stop")
    world.run(10)
    assert world.model.requests == []
    assert world.outcomes()[0] == ("look", "stopped")


def test_documents_are_shown_as_bounded_text(make: Make) -> None:
    world = make(settings=with_(SEEING, media_text_chars=100))
    page = b"<html><head><title>x</title></head><h1>Herons</h1><script>no()</script><p>stand still</p></html>"
    send(
        world, "read", document("long.txt", b"a" * 250, "text/plain"), document("page.html", page, "text/html"),
        document("data.csv", b"x,y\n1,2\n"),
    )  # fmt: skip
    world.run()
    text = asked(world.model.requests[0]).text
    assert "a" * 100 in text
    assert "a" * 101 not in text
    assert "150 more characters" in text
    assert "Herons\nstand still" in text
    assert "no()" not in text
    assert "x,y\n1,2" in text


def test_what_nobody_can_read_is_described_and_kept(make: Make) -> None:
    world = make(settings=SEEING)
    content = b"\x00\x01binary"
    send(world, "", document("tool.bin", content))
    world.run()
    sha = hashlib.sha256(content).hexdigest()
    assert asked(world.model.requests[0]).text == (
        f"[document tool.bin, application/octet-stream, 8 bytes, kept as attachment {sha[:12]}; not readable as text]"
    )
    assert (world._tmp / "media" / sha[:2] / sha).read_bytes() == content


def test_a_broken_picture_is_not_shown_to_the_model(make: Make) -> None:
    world = make(settings=SEEING)
    send(world, "look", photo("a", RED[: len(RED) // 2]))
    world.run()
    assert world.model.requests[0].images == {}
    assert "not readable" in asked(world.model.requests[0]).text


def test_without_transcription_a_voice_message_is_told_plainly_to_model_and_person(make: Make) -> None:
    world = make()
    ref = AttachmentRef("voice", "v", None, "audio/ogg", 4)
    send(world, "", (ref, b"OggS"))
    world.run()
    assert "cannot be listened to: no transcription is configured" in asked(world.model.requests[0]).text
    assert sum("I cannot listen to voice messages" in text for text in world.heard()) == 1
    assert len(world.heard()) == 2


def test_a_document_is_read_on_by_its_id_and_only_by_its_sender(make: Make) -> None:
    content = ("lorem " * 20 + "the end").encode()
    sha = hashlib.sha256(content).hexdigest()
    world = make(settings=with_(SEEING, media_text_chars=10))
    send(world, "read", document("l.txt", content, "text/plain"))
    world.run()
    world.model.script.append(tool_call("read_attachment", id=sha[:12], first_char=10))
    world.say("go on")
    world.run()
    assert results(world) == [content.decode()[10:]]
    world.model.script.append(tool_call("read_attachment", id=sha[:12]))
    world.say("show me", chat="8")
    world.run()
    assert "There is no attachment" in results(world)[-1]


def test_a_picture_is_looked_at_again_by_its_id(make: Make) -> None:
    world = make(settings=SEEING)
    send(world, "look", photo("a"))
    world.run()
    world.model.script.append(tool_call("read_attachment", id=hashlib.sha256(RED).hexdigest()[:12]))
    world.say("look again")
    world.run()
    [image] = next(i for i in world.model.requests[-1].items if getattr(i, "name", "") == "read_attachment").images
    assert world.model.requests[-1].images[image.sha256].data == RED


def test_files_are_kept_as_long_as_configured(make: Make) -> None:
    world = make(settings={**SEEING, "retention": {"media": "1d"}})
    send(world, "look", photo("a"))
    world.run(60)
    assert world.rows("SELECT count(*) FROM attachments") == [(1,)]
    world.run(2 * 86400)
    assert world.rows("SELECT count(*) FROM attachments") == [(0,)]


def test_an_answer_in_files_reaches_the_turn_that_asked(make: Make) -> None:
    world = make([tool_call("clarify", question="Which one?"), answer("That one.")], settings=SEEING)
    world.say("help me choose")
    world.run(10)
    assert world.heard() == ["Which one?"]
    send(world, "", photo("a"))
    world.run(30)
    assert world.heard() == ["Which one?", "That one."]
    assert shown(world.model.requests[-1]) == [RED]
    assert {outcome for _, outcome in world.outcomes()} == {"answered", "steered_into"}
    assert world.rows("SELECT count(*) FROM turns") == [(1,)]


@pytest.mark.parametrize("point", ["after_download", "after_step_intent", "before_t2"])
def test_an_answer_in_files_survives_a_kill(make: Make, point: str) -> None:
    world = make([tool_call("clarify", question="Which one?")], settings=SEEING)
    world.say("help me choose")
    world.run(10)
    world.checkpoints.at = point
    send(world, "this one", photo("a"))
    world.run(120)
    assert world.kills == 1
    assert shown(world.model.requests[-1]) == [RED]
    assert {outcome for _, outcome in world.outcomes()} <= {"answered", "merged_into", "steered_into"}
    check_promises(world, {})


def test_a_photo_steers_a_running_turn(make: Make) -> None:
    steering = {**SEEING, "agent": {"busy_mode": "steer"}}
    world = make([tool_call("session_search", query="tea"), answer("done")], settings=steering)
    world.say("look for tea")
    world.run(0.5)
    send(world, "this tea", photo("a"))
    world.run(60)
    assert world.heard() == ["done"]
    assert shown(world.model.requests[-1]) == [RED]


def test_no_log_line_holds_what_is_in_a_file(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    canary = "zephyr-canary-4711"
    world = make(settings=with_(SEEING, media_max_bytes=2000))
    world.server.download_failures.append(DeliveryFacts(PLATFORM, "BadRequest", 400, message=canary, sent=Sent.REFUSED))
    send(world, "a", document("a.txt", canary.encode()))
    files = document("b.txt", canary.encode()), photo("p", canary.encode()), document("c", canary.encode() * 200)
    send(world, "b", *files)
    world.run()
    assert canary in asked(world.model.requests[-1]).text
    said = capsys.readouterr()
    assert "attachment_not_fetched" in said.out + said.err
    assert canary not in said.out + said.err


def results(world: World) -> Sequence[str]:
    found = [load_item(text) for (text,) in world.rows("SELECT item FROM messages ORDER BY seq")]
    return [item.text for item in found if getattr(item, "name", "") == "read_attachment"]


def test_a_photo_that_is_no_longer_kept_is_told_in_words(make: Make) -> None:
    world = make(settings=SEEING)
    send(world, "look", photo("a"))
    world.run()
    [kept] = (world._tmp / "media").glob("*/*")
    kept.unlink()
    world.say("and now?")
    world.run()
    request = world.model.requests[-1]
    assert request.images == {}
    first = next(item for item in request.items if isinstance(item, UserItem))
    assert "was not shown it" in first.text
    assert world.now() < START
