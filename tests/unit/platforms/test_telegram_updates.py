"""What a Telegram update is (envelope) and what it means (normalise): total, pure, nothing invented."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.core.errors import Poison
from hermes.core.events import ButtonEvent, MessageEvent, NothingToDo, RawUpdate
from hermes.core.principals import ChatKind
from hermes.platforms.telegram.envelope import Envelopes
from hermes.platforms.telegram.normalise import QUOTE_LIMIT, normalise, without_mention

ACCOUNT = "424242"
PRIVATE = {"id": 7, "type": "private"}
GROUP = {"id": -100, "type": "supergroup", "title": "Team"}
ANN = {"id": 7, "is_bot": False, "first_name": "Ann", "last_name": "Lee"}


def message(**more: Any) -> dict[str, Any]:
    return {"message_id": 5, "date": 1000, "chat": PRIVATE, "from": ANN, **more}


def update(kind: str = "message", **more: Any) -> dict[str, Any]:
    return {"update_id": 1, kind: message(**more)}


def enveloped(body: object, *, envelopes: Envelopes | None = None) -> RawUpdate:
    return (envelopes or Envelopes(ACCOUNT, "hermes_bot")).of(body, 2000.5)


def event(body: object) -> MessageEvent:
    found = normalise(enveloped(body).raw)
    assert isinstance(found, MessageEvent)
    return found


def reason(body: object) -> str:
    found = normalise(enveloped(body).raw)
    assert isinstance(found, NothingToDo)
    return found.reason


def test_the_key_names_the_message_and_its_edit_not_the_update() -> None:
    first, again = enveloped(update(text="a")), enveloped({**update(text="a"), "update_id": 99})
    edit = enveloped(update("edited_message", text="b", edit_date=1005))
    assert first.dedup_key == again.dedup_key == "424242:7:5:0"
    assert edit.dedup_key == "424242:7:5:1005"
    assert first.message_ref == edit.message_ref == "7:5"
    assert (first.sent_at, edit.sent_at) == (1000.0, 1005.0)


def test_two_chats_share_no_message_reference_although_they_share_numbers() -> None:
    refs = {enveloped(update(text="a", chat={"id": n, "type": "private"})).message_ref for n in (7, 8)}
    assert refs == {"7:5", "8:5"}


def test_the_raw_text_is_ascii_json_and_gives_the_update_back() -> None:
    body = update(text="é 日本 😀 \ud83d")
    raw = enveloped(body).raw
    assert raw.isascii()
    assert {k: v for k, v in json.loads(raw).items() if k != "hermes"} == body


def test_parts_of_an_album_share_a_merge_key_and_a_lone_message_has_none() -> None:
    envelopes = Envelopes(ACCOUNT)
    keys = [
        enveloped(update(message_id=n, photo=[{"file_id": "f"}], media_group_id="m"), envelopes=envelopes)
        for n in (1, 2)
    ]
    assert keys[0].merge_key == keys[1].merge_key is not None
    assert enveloped(update(text="hi"), envelopes=envelopes).merge_key is None


def test_a_paste_that_the_client_split_is_one_and_what_follows_later_is_not() -> None:
    envelopes = Envelopes(ACCOUNT)

    def said(number: int, text: str, date: int) -> str | None:
        return enveloped(update(message_id=number, text=text, date=date), envelopes=envelopes).merge_key

    first, second, tail = said(1, "x" * 4096, 1000), said(2, "y" * 4096, 1000), said(3, "end", 1001)
    assert first == second == tail is not None
    assert said(4, "and another thing", 1001) is None
    assert said(5, "z" * 4096, 2000) not in {None, first}
    assert said(6, "later", 2010) is None
    said(7, "z" * 4096, 3000)
    assert said(8, "/stop", 3000) is None


def test_the_memory_of_split_pastes_is_bounded() -> None:
    envelopes = Envelopes(ACCOUNT)
    for chat in range(1, 2000):
        enveloped(update(text="x" * 4096, chat={"id": chat, "type": "private"}), envelopes=envelopes)
    assert len(envelopes._splits) <= 256


@pytest.mark.parametrize(
    "body",
    [
        None, 5, "text", [], {}, {"update_id": 3}, {"update_id": 3, "message": None},
        {"update_id": 3, "message": "x"}, {"update_id": 3, "message": {}},
        {"update_id": 3, "message": {"chat": {"id": "seven"}}},
        {"update_id": 3, "message": {**message(), "message_id": True}},
        {"update_id": 3, "message": {**message(), "from": [1]}},
        {"update_id": 3, "message": {**message(), "date": 2**70}},
        {"update_id": 3, "callback_query": {"id": "q"}},
        {"update_id": 3, "poll": {"id": "p"}},
    ],
)  # fmt: skip
def test_an_envelope_that_cannot_be_read_has_a_problem_and_a_stable_key(body: object) -> None:
    found, again = enveloped(body), enveloped(body)
    assert found.identity is None
    assert found.chat is None
    assert found.problem
    assert found.dedup_key == again.dedup_key
    assert found.raw.isascii()


def test_broken_updates_do_not_share_a_key() -> None:
    bodies = [None, {}, {"update_id": 3}, {"update_id": 3, "message": {}}, {"update_id": 4, "message": {}}]
    assert len({enveloped(body).dedup_key for body in bodies}) == len(bodies)


def test_a_kind_we_did_not_ask_for_needs_no_answer() -> None:
    body = {"update_id": 1, "my_chat_member": {"chat": PRIVATE, "from": ANN, "date": 1}}
    assert enveloped(body).identity is not None
    assert reason(body) == "a kind of update that is not served"


def test_a_message_says_who_where_what_and_when() -> None:
    found = event(update(text="hello"))
    assert (found.identity.user_id, found.identity.display) == ("7", "Ann Lee")
    assert (found.chat.kind, found.address.chat_id, found.address.account) == (ChatKind.PRIVATE, "7", ACCOUNT)
    assert (found.text, found.sent_at, found.edited, found.quoted) == ("hello", 1000.0, False, None)
    assert (found.address.thread_id, found.address.reply_to) == (None, None)


def test_an_edit_is_marked_as_one() -> None:
    found = event(update("edited_message", text="new", edit_date=1010))
    assert (found.text, found.edited, found.sent_at) == ("new", True, 1010.0)


def test_in_a_group_the_answer_replies_and_stays_in_its_topic() -> None:
    plain = event(update(text="x", chat=GROUP))
    topic = event(update(text="x", chat=GROUP, message_thread_id=44, is_topic_message=True))
    chain = event(update(text="x", chat=GROUP, message_thread_id=44))
    assert (plain.address.thread_id, plain.address.reply_to) == (None, "5")
    assert (topic.address.thread_id, topic.address.reply_to) == ("44", "5")
    assert topic.chat.thread_id == "44"
    assert chain.address.thread_id is None


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("@hermes_bot hello", "hello"),
        ("hello @Hermes_Bot", "hello"),
        ("hello @hermes_bot, there", "hello , there"),
        ("/stop@hermes_bot now", "/stop now"),
        ("/stop@other_bot", "/stop@other_bot"),
        ("@hermes_bot2 hello", "@hermes_bot2 hello"),
        ("mail me@hermes_bot.org", "mail me@hermes_bot.org"),
        ("a\n\n  b @hermes_bot", "a\n\n  b"),
    ],
)
def test_our_own_name_is_not_part_of_what_is_said(said: str, meant: str) -> None:
    assert without_mention(said, "hermes_bot") == meant
    assert event(update(text=said, chat=GROUP)).text == meant


def test_in_a_private_chat_the_name_stays() -> None:
    assert event(update(text="who is @hermes_bot")).text == "who is @hermes_bot"


@pytest.mark.parametrize(
    ("more", "kind", "ref", "name", "mime", "size"),
    [
        ({"photo": [{"file_id": "s", "width": 9, "height": 9}, {"file_id": "L", "width": 90, "height": 90}]},
         "photo", "L", None, "image/jpeg", None),
        ({"document": {"file_id": "d", "file_name": "a.pdf", "mime_type": "application/pdf", "file_size": 9}},
         "document", "d", "a.pdf", "application/pdf", 9),
        ({"voice": {"file_id": "v", "mime_type": "audio/ogg"}}, "voice", "v", None, "audio/ogg", None),
        ({"audio": {"file_id": "a"}}, "audio", "a", None, None, None),
        ({"video": {"file_id": "w"}}, "video", "w", None, None, None),
        ({"video_note": {"file_id": "n"}}, "video_note", "n", None, None, None),
        ({"animation": {"file_id": "g"}, "document": {"file_id": "g"}}, "animation", "g", None, None, None),
    ],
)  # fmt: skip
def test_a_file_becomes_one_reference(
    more: dict[str, Any], kind: str, ref: str, name: str | None, mime: str | None, size: int | None
) -> None:
    found = event(update(caption="look", **more))
    (file,) = found.attachments
    assert (file.kind, file.ref, file.name, file.mime, file.size) == (kind, ref, name, mime, size)
    assert found.text == "look"


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"sticker": {"file_id": "s", "emoji": "😀"}}, "[sticker 😀]"),
        ({"location": {"latitude": 48.5, "longitude": 9}}, "[location: 48.5, 9]"),
        ({"venue": {"title": "Café", "address": "1 St", "location": {"latitude": 1, "longitude": 2}}},
         "[venue: Café, 1 St]\n[location: 1, 2]"),
        ({"contact": {"first_name": "Bo", "phone_number": "+1"}}, "[contact: Bo, +1]"),
        ({"poll": {"question": "Tea?"}}, "[poll: Tea?]"),
        ({"dice": {"emoji": "🎲", "value": 3}}, "[dice 🎲: 3]"),
        ({"forward_origin": {"type": "user", "sender_user": {"first_name": "Cy"}}, "text": "hi"},
         "[forwarded from Cy]\nhi"),
    ],
)  # fmt: skip
def test_what_is_no_file_is_described_in_words(more: dict[str, Any], text: str) -> None:
    assert event(update(**more)).text == text


def test_a_reply_carries_what_it_answers_and_a_chosen_quote_goes_first() -> None:
    replied = {"message_id": 3, "text": "the question" + "x" * QUOTE_LIMIT}
    assert (event(update(text="a", reply_to_message=replied)).quoted or "").startswith("the question")
    assert len(event(update(text="a", reply_to_message=replied)).quoted or "") == QUOTE_LIMIT
    assert event(update(text="a", reply_to_message=replied, quote={"text": "part"})).quoted == "part"
    opening = {"message_id": 3, "forum_topic_created": {"name": "t"}, "text": "t"}
    assert event(update(text="a", reply_to_message=opening)).quoted is None


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (update(new_chat_members=[ANN]), "new_chat_members"),
        (update(text="x", **{"from": {**ANN, "is_bot": True}}), "said by a bot"),
        (update(text="x", chat={"id": -5, "type": "channel"}), "a post in a channel"),
        (update(text="x", chat=GROUP, is_automatic_forward=True), "forwarded by Telegram"),
        ({"update_id": 1, "callback_query": {"id": "q", "from": ANN, "message": message()}}, "without data"),
    ],
)
def test_what_needs_no_answer_says_why(body: dict[str, Any], why: str) -> None:
    assert why in reason(body)


def test_a_button_says_who_pressed_what_and_when_it_arrived() -> None:
    query = {
        "id": "q1",
        "from": {"id": 8, "first_name": "Bo"},
        "message": message(chat=GROUP),
        "data": "yes:4",
    }
    body = {"update_id": 1, "callback_query": query}
    found = normalise(enveloped(body).raw)
    assert isinstance(found, ButtonEvent)
    assert (found.identity.user_id, found.data, found.message_ref) == ("8", "yes:4", "-100:5")
    assert found.sent_at == 2000.5
    assert enveloped(body).dedup_key == "424242:button:q1"


def test_a_lone_surrogate_is_replaced() -> None:
    assert event(update(text="a\ud83db")).text == "a\ufffdb"


@pytest.mark.parametrize(
    "raw", ["", "{", "null", "[]", "5", '{"message": 1}', '{"message": {"chat": {}}}', "[" * 100_000]
)
def test_what_is_no_update_is_poison(raw: str) -> None:
    with pytest.raises(Poison):
        normalise(raw)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)
_NAMES = st.sampled_from(
    [
        "text",
        "caption",
        "photo",
        "document",
        "from",
        "chat",
        "date",
        "message_id",
        "location",
        "quote",
        "venue",
        "reply_to_message",
        "voice",
        "forward_origin",
        "is_topic_message",
        "message_thread_id",
        "edit_date",
        "dice",
        "media_group_id",
        "sender_chat",
        "contact",
        "sticker",
        "poll",
    ]
)


@given(
    st.sampled_from(["message", "edited_message", "callback_query", "inline_query"]),
    st.dictionaries(_NAMES, _JSON, max_size=4),
)
def test_any_change_to_a_message_gives_an_event_or_poison(kind: str, damage: dict[str, Any]) -> None:
    for body in ({"update_id": 1, kind: message(text="x") | damage}, {"update_id": 1, kind: damage}):
        raw = enveloped(body).raw
        try:
            found = normalise(raw)
        except Poison:
            continue
        assert isinstance(found, MessageEvent | ButtonEvent | NothingToDo)


@given(_JSON)
def test_any_json_gives_an_envelope_and_an_event_or_poison(body: Any) -> None:
    found = enveloped(body)
    assert (found.problem is None) == (found.identity is not None)
    try:
        meant = normalise(found.raw)
    except Poison:
        return
    assert isinstance(meant, MessageEvent | ButtonEvent | NothingToDo)
