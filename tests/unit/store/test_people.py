"""R37: nobody finds what is not theirs; and search finds what was said, in any script."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hermes.core.principals import PrincipalId
from hermes.core.records import StoredMessage
from hermes.core.transcript import UserItem
from hermes.store.database import InlineDatabase
from tests.unit.store.making import Store


async def principal(store: Store, chat: str) -> PrincipalId:
    session = await store.sessions.session_for(f"telegram:{chat}")
    [(found,)] = await store.rows("SELECT principal_id FROM sessions WHERE id=?", session)
    return PrincipalId(str(found))


def texts(found: list[StoredMessage]) -> list[str]:
    return [m.item.text for m in found if isinstance(m.item, UserItem)]


SAID = (
    ("I keep bees on the roof", "bees"),
    ("I keep bees on the roof", "BEES roof"),
    ("我在北京的图书馆学习中文", "图书馆"),
    ("我在北京的图书馆学习中文", "北京"),
    ("明日の会議は東京で行います", "会議"),
    ("明日の会議は東京で行います", "東京で行います"),
    ("カレーを食べたい", "カレー"),
    ("내일 서울에서 만나요", "서울"),
    ("Straße nach Überlingen", "Überlingen"),
    ('he said "quoted" words', '"quoted"'),
    ("a NEAR b AND c", "NEAR AND"),
    ("100% of it_all", "100%"),
    ("use --force and foo:bar", "foo:bar"),
)


@pytest.mark.parametrize(("text", "query"), SAID)
async def test_search_finds_words_in_any_script_and_two_letter_words_too(
    store: Store, text: str, query: str
) -> None:
    await store.answer(1, "something else altogether")
    await store.answer(2, text, reply="noted")
    assert texts(await store.sessions.search(await principal(store, "7"), query, 10)) == [text]


ODD_QUERIES = ("", "   ", '"', "***", "NOT", "((", "nowhere", "\0\0\0", "nowhere\0at all", "\ud800\ud800\ud800")


@pytest.mark.parametrize("query", [*ODD_QUERIES, "a" * 5000, "w " * 2000])
async def test_a_query_of_any_shape_finds_nothing_rather_than_failing(store: Store, query: str) -> None:
    await store.answer(1, "hello there")
    assert await store.sessions.search(await principal(store, "7"), query, 10) == []


async def test_another_persons_words_are_never_found_or_listed(store: Store) -> None:
    await store.answer(1, "my secret is 東京 bees", chat="7")
    await store.answer(2, "hello", chat="8")
    other = await principal(store, "8")
    for query in ("bees", "東京", "secret bees", "hi"):
        assert all("bees" not in t for t in texts(await store.sessions.search(other, query, 100)))
    assert [s.principal_id for s in await store.sessions.overview(other, 10)] == [other]
    assert len(await store.sessions.overview(None, 10)) == 2


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    said=st.lists(st.tuples(st.sampled_from("78"), st.text(min_size=1, max_size=20)), min_size=1, max_size=6),
    query=st.text(min_size=1, max_size=8),
)
def test_whatever_is_said_and_asked_search_stays_with_its_principal(
    said: list[tuple[str, str]], query: str
) -> None:
    db = InlineDatabase()
    try:
        assert asyncio.run(_strayed(Store.over(db), said, query)) == set()
    finally:
        db.conn.close()


async def _strayed(store: Store, said: list[tuple[str, str]], query: str) -> set[str]:
    """What a search found that its principal never said."""
    strayed: set[str] = set()
    storable = [(c, t.encode("utf-8", "replace").decode()) for c, t in said]
    for number, (chat, text) in enumerate(storable):
        await store.answer(number, text, chat=chat)
    for chat in {c for c, _ in storable}:
        mine = {t for c, t in storable if c == chat}
        found = await store.sessions.search(
            await principal(store, chat), query.encode("utf-8", "replace").decode(), 50
        )
        strayed |= set(texts(found)) - mine
    return strayed


async def test_the_newest_is_found_first_and_the_answer_is_found_like_the_question(store: Store) -> None:
    for number in range(3):
        await store.answer(number, f"bees {number}", reply=f"honey {number}")
    me = await principal(store, "7")
    assert texts(await store.sessions.search(me, "bees", 2)) == ["bees 2", "bees 1"]
    assert len(await store.sessions.search(me, "honey", 10)) == 3


async def test_an_overview_counts_messages_and_lists_the_latest_first(store: Store) -> None:
    for number, chat in enumerate(("7", "8")):
        await store.answer(number, chat=chat)
    session = await store.sessions.session_for("telegram:7")
    await store.db.write(
        lambda conn: conn.execute("UPDATE sessions SET last_active_at=last_active_at+1 WHERE id=?", (session,))
    )
    listed = await store.sessions.overview(None, 10)
    assert [(s.id == session, s.messages) for s in listed] == [(True, 2), (False, 2)]
