"""Snapshots stand for the covered past and change none of it; the present one is found whatever happens (R36)."""

from __future__ import annotations

from dataclasses import replace

from hermes.core.ids import SessionId
from hermes.core.snapshots import LiveHistory, Snapshot
from hermes.core.transcript import (
    AssistantItem,
    Item,
    ToolCall,
    ToolResultItem,
    UserItem,
    dump_item,
    load_item,
)
from hermes.policy.compaction import summary_note
from hermes.store.retention import Ages, sweep
from hermes.store.snapshots import SqliteSnapshots
from tests.unit.store.making import NOW, Store


def items(live: LiveHistory) -> list[Item]:
    return [load_item(text) for text in live.items]


async def conversation(store: Store, exchanges: int = 4) -> tuple[SessionId, SqliteSnapshots]:
    """q1 a1 q2 a2 …, in rows 1, 2, 3, …"""
    for number in range(1, exchanges + 1):
        await store.answer(number, f"q{number}", f"a{number}")
    [(session,)] = await store.rows("SELECT id FROM sessions")
    return SessionId(str(session)), SqliteSnapshots(store.db)


async def cover(snapshots: SqliteSnapshots, session: SessionId, to: int, text: str = "notes") -> bool:
    live = await snapshots.live(session)
    new = replace(live.snapshot, covers_to_seq=to, text=text)
    return await snapshots.install(session, live.snapshot.id, new, NOW)


async def test_what_comes_after_the_cut_stays_live_behind_the_summary(store: Store) -> None:
    session, snapshots = await conversation(store)
    before = await store.rows("SELECT * FROM messages")
    assert await cover(snapshots, session, 4)
    live = await snapshots.live(session)
    assert items(live)[0] == summary_note("notes")
    assert [i.text for i in items(live)[1:]] == ["q3", "a3", "q4", "a4"]
    assert live.seqs == (None, 5, 6, 7, 8)
    assert await store.rows("SELECT * FROM messages") == before
    await store.say(9, "q9")
    claim = await store.claim(session)
    assert claim.history == live.items


async def test_the_next_snapshot_takes_the_place_of_the_one_it_was_made_from(store: Store) -> None:
    session, snapshots = await conversation(store)
    assert await cover(snapshots, session, 2, "one")
    assert await cover(snapshots, session, 6, "two")
    assert items(await snapshots.live(session))[0] == summary_note("two")
    assert await store.rows("SELECT covers_to_seq, previous_id, text FROM snapshots ORDER BY id") == [
        (2, None, "one"), (6, 1, "two"),
    ]  # fmt: skip


async def test_a_summary_whose_predecessor_was_replaced_is_thrown_away(store: Store) -> None:
    session, snapshots = await conversation(store)
    stale = (await snapshots.live(session)).snapshot
    assert await cover(snapshots, session, 4, "first")
    assert not await snapshots.install(session, None, replace(stale, covers_to_seq=6, text="late"), NOW)
    assert items(await snapshots.live(session))[0] == summary_note("first")


async def test_a_summary_of_an_earlier_generation_is_thrown_away(store: Store) -> None:
    session, snapshots = await conversation(store)
    old = (await snapshots.live(session)).snapshot
    await store.turns.new_generation(session, NOW)
    assert not await snapshots.install(session, None, replace(old, covers_to_seq=4, text="late"), NOW)
    assert items(await snapshots.live(session)) == []


async def test_a_new_conversation_knows_nothing_of_the_old_ones_summary(store: Store) -> None:
    session, snapshots = await conversation(store)
    await cover(snapshots, session, 4)
    await store.turns.new_generation(session, NOW)
    await store.answer(20, "fresh", "start")
    assert [i.text for i in items(await snapshots.live(session))] == ["fresh", "start"]


async def test_a_turn_that_runs_while_a_new_conversation_begins_keeps_its_summary(store: Store) -> None:
    session, snapshots = await conversation(store)
    await cover(snapshots, session, 4)
    await store.say(20, "last words")
    claim = await store.claim(session)
    await store.begin(claim, text="last words")
    await store.turns.new_generation(session, NOW)
    said = [i.text for i in items(await snapshots.live(session))]
    assert said[0] == summary_note("notes").text
    assert said[1:] == ["q3", "a3", "q4", "a4", "last words"]


async def test_taking_back_below_the_cut_selects_the_earlier_snapshot(store: Store) -> None:
    session, snapshots = await conversation(store)
    await cover(snapshots, session, 2, "one")
    await cover(snapshots, session, 6, "two")
    await snapshots.fall_back(session, 5)
    live = await snapshots.live(session)
    assert items(live)[0] == summary_note("one")
    assert [i.text for i in items(live)[1:]] == ["q2", "a2", "q3", "a3", "q4", "a4"]
    await snapshots.fall_back(session, 1)
    assert items(await snapshots.live(session))[0] == UserItem("q1")


async def test_a_summary_of_what_was_taken_back_meanwhile_is_thrown_away(store: Store) -> None:
    session, snapshots = await conversation(store)
    await store.db.write(lambda conn: conn.execute("UPDATE messages SET live=0 WHERE seq>=5"))
    assert not await cover(snapshots, session, 6)
    assert await cover(snapshots, session, 4)


async def test_the_last_persons_message_is_live_wherever_the_cut_lies(store: Store) -> None:
    session, snapshots = await conversation(store, 2)
    await store.say(9, "look into it")
    claim = await store.claim(session)
    await store.begin(claim, text="look into it")  # row 5
    assert await cover(snapshots, session, 5)
    live = await snapshots.live(session)
    assert items(live) == [summary_note("notes"), UserItem("look into it")]
    assert live.seqs == (None, 5)
    assert live.last_turn == claim.turn_id


async def test_old_results_are_shown_short_and_stay_whole_on_disk(store: Store) -> None:
    session, snapshots = await conversation(store, 1)
    call = ToolCall("c", "read", "{}")
    for item in (AssistantItem("", (call,)), ToolResultItem("c", "read", "x" * 5000)):
        row = (session, dump_item(item))
        await store.db.write(
            lambda conn, row=row: conn.execute(  # type: ignore[misc]
                "INSERT INTO messages(session_id, generation, principal_id, step, item, text, created_at) "
                "VALUES (?,1,'p',1,?,'',0)",
                row,
            )
        )
    live = await snapshots.live(session)
    short = replace(live.snapshot, results_to_seq=4, results_chars=500)
    assert await snapshots.install(session, None, short, NOW)
    shown = items(await snapshots.live(session))[-1]
    assert len(shown.text) < 600
    assert items(await snapshots.live(session))[0] == UserItem("q1"), "nothing is covered yet"
    [(kept,)] = await store.rows("SELECT item FROM messages WHERE seq=4")
    assert len(str(kept)) > 5000


async def test_beside_a_turn_the_last_one_pays(store: Store) -> None:
    session, snapshots = await conversation(store, 2)
    assert (await snapshots.live(session)).last_turn == 2


async def test_a_snapshot_goes_with_the_messages_it_tells_of(store: Store) -> None:
    session, snapshots = await conversation(store)
    await cover(snapshots, session, 4)
    ages = Ages(messages=100.0, inbox=10.0, outbox=10.0, seen_keys=10.0)
    while await sweep(store.db, ages, NOW + 5000):
        pass
    assert await store.rows("SELECT count(*) FROM snapshots") == [(0,)]
    assert await store.rows("SELECT snapshot_id FROM sessions") == [(None,)]
    assert items(await snapshots.live(session)) == []


async def test_a_session_that_is_not_there_has_no_history(store: Store) -> None:
    assert await SqliteSnapshots(store.db).live(SessionId("nobody")) == LiveHistory(Snapshot(0), (), ())
