"""The Bot API simulator against the real python-telegram-bot: what each method does and refuses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from telegram import (
    Bot,
    BotCommand,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    MessageEntity,
    ReactionTypeEmoji,
    ReplyParameters,
)
from telegram.error import BadRequest, ChatMigrated, Conflict, Forbidden, InvalidToken, RetryAfter
from telegram.request import HTTPXRequest

from hermes.simulators.telegram import Flood, TelegramSimulator

pytestmark = [
    pytest.mark.wire,
    # python-telegram-bot warns whenever it makes a RetryAfter, unless PTB_TIMEDELTA is set
    pytest.mark.filterwarnings("ignore::telegram.warnings.PTBDeprecationWarning"),
]


def make_bot(sim: TelegramSimulator, *, token: str | None = None, read_timeout: float = 5) -> Bot:
    return Bot(
        token or sim.token,
        base_url=sim.base_url,
        base_file_url=sim.base_file_url,
        request=HTTPXRequest(read_timeout=read_timeout, connect_timeout=2),
        get_updates_request=HTTPXRequest(connection_pool_size=2, read_timeout=read_timeout),
    )


@pytest_asyncio.fixture
async def sim() -> AsyncIterator[TelegramSimulator]:
    async with TelegramSimulator() as simulator:
        yield simulator


@pytest_asyncio.fixture
async def bot(sim: TelegramSimulator) -> AsyncIterator[Bot]:
    async with make_bot(sim) as client:
        yield client


async def test_the_bot_learns_its_own_name(sim: TelegramSimulator, bot: Bot) -> None:
    assert (bot.id, bot.username) == (424242, "simulated_bot")
    assert await bot.delete_webhook()


async def test_updates_come_again_until_a_higher_offset_confirms_them(
    sim: TelegramSimulator, bot: Bot
) -> None:
    sim.say(7, "one")
    sim.say(7, "two")
    first = await bot.get_updates()
    assert [update.message.text for update in first if update.message] == ["one", "two"]
    assert await bot.get_updates() == first
    left = await bot.get_updates(offset=first[0].update_id + 1)
    assert left == first[1:]
    assert sim.world.confirmed == [first[0].update_id]


async def test_a_webhook_forbids_polling_until_it_is_deleted(sim: TelegramSimulator, bot: Bot) -> None:
    await bot.set_webhook("https://example.org/hook")
    with pytest.raises(Conflict, match="while webhook is active"):
        await bot.get_updates()
    await bot.delete_webhook()
    assert await bot.get_updates() == ()


async def test_a_negative_offset_keeps_only_the_last_updates(sim: TelegramSimulator, bot: Bot) -> None:
    for text in ("a", "b", "c"):
        sim.say(7, text)
    (last,) = await bot.get_updates(offset=-1)
    assert last.message
    assert last.message.text == "c"


async def test_a_long_poll_ends_when_somebody_writes(sim: TelegramSimulator, bot: Bot) -> None:
    async with asyncio.TaskGroup() as group:
        poll = group.create_task(bot.get_updates(timeout=30))
        await sim.wait_for(lambda: sim.polls == 1)
        sim.say(7, "hello")
    assert [update.message.text for update in poll.result() if update.message] == ["hello"]


async def test_a_second_poller_ends_the_first_with_conflict(sim: TelegramSimulator, bot: Bot) -> None:
    async with asyncio.TaskGroup() as group:
        poll = group.create_task(_ended_by(bot.get_updates(timeout=30)))
        await sim.wait_for(lambda: sim.polls == 1)
        async with make_bot(sim) as other:
            assert await other.get_updates(timeout=0) == ()
    assert isinstance(poll.result(), Conflict)


async def _ended_by(call: Any) -> Exception | None:
    try:
        await call
    except (Conflict, InvalidToken, BadRequest) as error:
        return error
    return None


async def test_only_allowed_kinds_of_update_are_kept(sim: TelegramSimulator, bot: Bot) -> None:
    await bot.get_updates(allowed_updates=["edited_message"])
    number = sim.say(7, "not asked for")
    sim.edit(7, number, "asked for")
    (update,) = await bot.get_updates(allowed_updates=["edited_message"])
    assert update.edited_message
    assert update.edited_message.text == "asked for"


async def test_people_write_in_groups_threads_albums_and_press_buttons(
    sim: TelegramSimulator, bot: Bot
) -> None:
    markup = InlineKeyboardMarkup([[InlineKeyboardButton("Yes", callback_data="yes")]])
    asked = await bot.send_message(-5, "Sure?", reply_markup=markup)
    sim.say(-5, "/start now", user=8, thread=3, reply_to=asked.message_id)
    sim.album(-5, [b"1", b"2"], "two photos", user=8)
    query = sim.press(-5, asked.message_id, "yes", user=8)
    say, one, two, press = await bot.get_updates()
    assert say.message
    assert say.message.message_thread_id == 3
    assert say.message.chat.is_forum
    assert say.message.entities[0].type == MessageEntity.BOT_COMMAND
    assert say.message.reply_to_message
    assert say.message.reply_to_message.text == "Sure?"
    assert one.message
    assert two.message
    assert one.message.caption == "two photos"
    assert one.message.media_group_id == two.message.media_group_id is not None
    assert press.callback_query
    assert press.callback_query.data == "yes"
    assert await bot.answer_callback_query(query)
    with pytest.raises(BadRequest, match="Query is too old"):
        await bot.answer_callback_query(query)


async def test_a_raw_update_reaches_the_bot_as_it_is(sim: TelegramSimulator) -> None:
    sim.inject({"message": {"text": 5, "nonsense": True}})
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{sim.base_url}{sim.token}/getUpdates", json={"timeout": 0}) as answer,
    ):
        raw = (await answer.json())["result"]
    assert raw[0]["message"] == {"text": 5, "nonsense": True}


async def test_what_the_user_sees_is_recorded(sim: TelegramSimulator, bot: Bot) -> None:
    question = sim.say(7, "hi", thread=9)
    sent = await bot.send_message(
        7,
        "*bold* and 1\\.",
        parse_mode="MarkdownV2",
        reply_parameters=ReplyParameters(question),
        message_thread_id=9,
    )
    assert sent.text == "bold and 1."
    assert sent.entities[0].type == MessageEntity.BOLD
    assert sent.entities[0].length == 4
    await bot.edit_message_text("second", 7, sent.message_id)
    await bot.edit_message_text("third", 7, sent.message_id)
    (seen,) = sim.chat(7)
    assert (seen.text, seen.edits) == ("third", ["second", "third"])
    assert (seen.reply_to, seen.thread, seen.message_id) == (question, 9, sent.message_id)
    await bot.delete_message(7, sent.message_id)
    assert sim.chat(7) == []


@pytest.mark.parametrize(
    ("text", "options", "refusal"),
    [
        ("", {}, "Message text is empty"),
        ("  \n ", {}, "Message text is empty"),
        ("a" * 4097, {}, "Message is too long"),
        ("\U0001f600" * 2049, {}, "Message is too long"),
        ("1.", {"parse_mode": "MarkdownV2"}, r"Can't parse entities: character '\.' is reserved"),
        ("*x", {"parse_mode": "MarkdownV2"}, "end of Bold entity at byte offset 0"),
        ("é `x", {"parse_mode": "MarkdownV2"}, "end of Code entity at byte offset 3"),
        ("[x](y", {"parse_mode": "MarkdownV2"}, "end of a URL at byte offset 3"),
        ("<x>y</x>", {"parse_mode": "HTML"}, 'nsupported start tag "x" at byte offset 0'),
        ("<b>y</i>", {"parse_mode": "HTML"}, 'nmatched end tag at byte offset 4, expected "</b>"'),
        ("<b>y", {"parse_mode": "HTML"}, 'end tag corresponding to start tag "b"'),
        ("y</b>", {"parse_mode": "HTML"}, "nexpected end tag at byte offset 1"),
        ("*x", {"parse_mode": "Markdown"}, "end of the entity starting at byte offset 0"),
        ("x", {"parse_mode": "nonsense"}, "Unsupported parse_mode"),
        (
            "hello",
            {"entities": [MessageEntity("bold", 0, 100)]},
            "Entity beginning at UTF-16 offset 0 ends after the end of the text at UTF-16 offset 100",
        ),
        ("hello", {"entities": [MessageEntity("bold", 9, 1)]}, "Entity begins after the end of the text"),
        (
            "\U0001f600x",
            {"entities": [MessageEntity("bold", 1, 1)]},
            "Entity begins in a middle of a UTF-16 symbol",
        ),
        ("x", {"reply_parameters": ReplyParameters(99)}, "Message to be replied not found"),
        ("x", {"message_thread_id": 99}, "Message thread not found"),
    ],
)
async def test_a_message_is_refused_in_telegrams_words(
    bot: Bot, text: str, options: dict[str, Any], refusal: str
) -> None:
    with pytest.raises(BadRequest, match="(?i)" + refusal):
        await bot.send_message(7, text, **options)


@pytest.mark.parametrize(
    ("text", "mode", "seen", "kinds"),
    [
        ("a" * 4096, None, "a" * 4096, []),
        ("*" + "a" * 4096 + "*", "MarkdownV2", "a" * 4096, ["bold"]),
        ("__u__ ~s~ ||p|| _i_", "MarkdownV2", "u s p i", ["underline", "strikethrough", "spoiler", "italic"]),
        ("```py\na.b()\n```", "MarkdownV2", "a.b()", ["pre"]),
        ("> not so", None, "> not so", []),
        (">one\n>two\nthree", "MarkdownV2", "one\ntwo\nthree", ["blockquote"]),
        ("[x\\.y](http://e.org/a\\)b)", "MarkdownV2", "x.y", ["text_link"]),
        (
            "<b>a <i>b</i></b> &amp; <a href='http://e.org'>c</a>",
            "HTML",
            "a b & c",
            ["bold", "italic", "text_link"],
        ),
        ("*a* _b_ `c` [d](http://e.org)", "Markdown", "a b c d", ["bold", "italic", "code", "text_link"]),
    ],
)
async def test_markup_becomes_text_and_entities(
    sim: TelegramSimulator, bot: Bot, text: str, mode: str | None, seen: str, kinds: list[str]
) -> None:
    sent = await bot.send_message(7, text, parse_mode=mode)
    assert [entity.type for entity in sent.entities] == kinds
    assert sim.texts(7) == [seen]


async def test_edits_are_refused_in_telegrams_words(sim: TelegramSimulator, bot: Bot) -> None:
    sent = await bot.send_message(7, "x")
    with pytest.raises(BadRequest, match="Message is not modified"):
        await bot.edit_message_text("x", 7, sent.message_id)
    with pytest.raises(BadRequest, match="Message to edit not found"):
        await bot.edit_message_text("y", 7, 99)
    with pytest.raises(BadRequest, match="Message can't be edited"):
        await bot.edit_message_text("y", 7, sim.say(7, "mine"))
    with pytest.raises(BadRequest, match="Message to delete not found"):
        await bot.delete_message(7, 99)
    assert sim.texts(7) == ["x"]


async def test_files_go_both_ways(sim: TelegramSimulator, bot: Bot) -> None:
    sim.say(7, "see", document=("a.txt", b"content"))
    (update,) = await bot.get_updates()
    assert update.message
    assert update.message.document
    file = await bot.get_file(update.message.document.file_id)
    assert bytes(await file.download_as_bytearray()) == b"content"
    with pytest.raises(BadRequest, match="Invalid file_id"):
        await bot.get_file("nonsense")
    sent = await bot.send_document(7, b"report", filename="r.txt", caption="<b>R</b>", parse_mode="HTML")
    await bot.send_photo(7, b"picture", filename="p.png")
    assert sent.document
    assert sent.document.file_name == "r.txt"
    assert [(seen.kind, seen.attachment, seen.text) for seen in sim.chat(7)] == [
        ("document", "r.txt", "R"),
        ("photo", "p.png", ""),
    ]
    assert sim.world.files[sent.document.file_id][1] == b"report"


async def test_the_small_methods_leave_their_traces(sim: TelegramSimulator, bot: Bot) -> None:
    number = sim.say(7, "hi")
    assert await bot.send_chat_action(7, "typing")
    assert await bot.set_my_commands([BotCommand("help", "what I can do")])
    assert await bot.set_message_reaction(7, number, [ReactionTypeEmoji("👍")])
    assert await bot.send_message_draft(7, 5, text="soon")
    assert (await bot.get_chat(7)).type == "private"
    assert sim.world.actions == [(7, "typing", None)]
    assert sim.world.commands == [{"command": "help", "description": "what I can do"}]
    assert sim.world.reactions[7, number] == [{"type": "emoji", "emoji": "👍"}]
    assert [(draft.draft_id, draft.text) for draft in sim.drafts(7)] == [(5, "soon")]
    assert [call.method for call in sim.calls][-5:-3] == ["sendChatAction", "setMyCommands"]


async def test_closed_chats_answer_like_telegrams(sim: TelegramSimulator, bot: Bot) -> None:
    sim.block(7)
    with pytest.raises(Forbidden, match="blocked by the user"):
        await bot.send_message(7, "x")
    sim.reopen(7)
    assert await bot.send_message(7, "x")
    sim.migrate(-5, -100500)
    with pytest.raises(ChatMigrated) as moved:
        await bot.send_message(-5, "x")
    assert moved.value.new_chat_id == -100500


async def test_a_revoked_token_is_refused_until_it_is_restored(sim: TelegramSimulator, bot: Bot) -> None:
    async with asyncio.TaskGroup() as group:
        poll = group.create_task(_ended_by(bot.get_updates(timeout=30)))
        await sim.wait_for(lambda: sim.polls == 1)
        sim.revoke()
    assert isinstance(poll.result(), InvalidToken)
    with pytest.raises(InvalidToken):
        await bot.get_me()
    sim.restore()
    assert (await bot.get_me()).id == bot.id
    stranger = make_bot(sim, token="1:wrong")
    with pytest.raises(InvalidToken):
        await stranger.initialize()
    await stranger.shutdown()


async def test_a_flood_ban_doubles_for_whoever_goes_on(bot: Bot, sim: TelegramSimulator) -> None:
    sim.world.flood = Flood(limit=2, window=60, ban=4)
    await bot.send_message(7, "1")
    await bot.send_message(7, "2")
    waits = []
    for _ in range(3):
        with pytest.raises(RetryAfter) as caught:
            await bot.send_message(7, "3")
        waits.append(int(caught.value.message.split()[-2]))
    assert waits == [4, 8, 16]
    assert await bot.send_message(8, "another chat")


async def test_strict_chats_must_have_written_first() -> None:
    async with TelegramSimulator(strict_chats=True) as sim, make_bot(sim) as bot:
        with pytest.raises(BadRequest, match="Chat not found"):
            await bot.send_message(7, "x")
        sim.say(7, "hi")
        assert await bot.send_message(7, "x")
