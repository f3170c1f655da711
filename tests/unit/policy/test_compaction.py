"""Compaction ends, leaves room, and keeps what it must, whatever the history, the window and the summariser."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from hermes.core.transcript import AssistantItem, Item, ToolCall, ToolResultItem, UserItem
from hermes.policy.compaction import (
    FREE,
    Cut,
    Nothing,
    Room,
    Shorten,
    Trim,
    compacted,
    plan_compaction,
    reserve_for,
    summary_note,
)
from hermes.policy.summary import clipped, lie, lines_of
from hermes.policy.trim import (
    inviolable,
    is_person,
    is_summary,
    item_tokens,
    last_question,
    pending_calls,
    starts,
    text_tokens,
    trim,
    with_short_results,
)
from tests.unit.policy.histories import WORDS, legal

WINDOWS = st.sampled_from([4_096, 8_192, 32_768, 128_000, 200_000, 1_000_000, 2_000_000])


@st.composite
def rooms(draw: st.DrawFn) -> Room:
    window = draw(WINDOWS | st.integers(4_000, 2_000_000))
    reserve = reserve_for(window, draw(st.sampled_from([None, 256, 8_192, 64_000])))
    threshold = draw(st.floats(0.3, 0.9))
    return Room(
        window, draw(st.integers(0, window // 3)), reserve, threshold, draw(st.floats(0.05, threshold - 0.1))
    )


@st.composite
def long_histories(draw: st.DrawFn, window: int) -> tuple[Item, ...]:
    """A legal history blown up until it is around the window's size or beyond it."""
    base = draw(legal())
    size = max(1, sum(map(item_tokens, base)))
    times = min(3_000, draw(st.integers(1, 3)) * window // size // 2)
    if times < 2:
        return base
    filler: list[Item] = []
    words = draw(st.sampled_from(["word ", "图书馆", "x = f(y)\n"])) * draw(st.integers(50, 2_000))
    count = max(2, draw(st.integers(1, 3)) * window // (2 * max(1, text_tokens(words))))
    for number in range(min(count, 400)):
        call = ToolCall(f"f{number}", "read", "{}")
        filler += draw(
            st.sampled_from(
                [
                    [UserItem(words), AssistantItem("Yes.")],
                    [
                        UserItem("Read."),
                        AssistantItem("", (call,)),
                        ToolResultItem(call.call_id, "read", words),
                    ],
                ]
            )
        )
    return (*base[:1], *filler, *base[1:]) if base and is_summary(base[0]) else (*filler, *base)


def _honest(source: str, tokens: int) -> str:
    return "They spoke about books and files."


LIARS: dict[str, Callable[[str, int], str]] = {
    "honest": _honest,
    "nothing": lambda source, tokens: "  \n",
    "echo": lambda source, tokens: source,
    "longer": lambda source, tokens: source * 3 + "!",
    "too long for its bound": lambda source, tokens: "Fact. " * (tokens * 3),
    "refuses": lambda source, tokens: "I'm sorry, I can't help with that.",
}


def run(
    items: tuple[Item, ...], room: Room, protect: int, answer: Callable[[str, int], str]
) -> tuple[int, tuple[Item, ...]]:
    """The driver in short: at most two summaries, then the trim; returns how many summaries were asked for."""
    asked = 0
    for _ in range(8):
        plan = plan_compaction(items, room, protect=protect, weigh=item_tokens)
        match plan:
            case Nothing() | Trim():
                break
            case Shorten(chars, before):
                items = (*with_short_results(items[:before], chars), *items[before:])
            case Cut(at, tokens):
                if asked == 2:
                    break
                asked += 1
                source = "\n".join(lines_of(items[:at]))
                text = answer(source, tokens)
                if lie(text, source, text_tokens(text), sum(map(item_tokens, items[:at]))) is not None:
                    break
                items = compacted(items, at, clipped(text, tokens, text_tokens))
    else:
        raise AssertionError("compaction does not end")
    return asked, trim(items, room.limit, item_tokens).items


@given(st.data())
def test_after_compaction_there_is_room_and_everything_that_must_be_there(data: st.DataObject) -> None:
    room = data.draw(rooms())
    items = data.draw(long_histories(room.window))
    answer = LIARS[data.draw(st.sampled_from(sorted(LIARS)))]
    before = tuple(items)
    asked, sent = run(items, room, data.draw(st.integers(0, 40)), answer)
    assert items == before
    assert asked <= 2
    question = last_question(items)
    if question is not None:
        assert items[question] in sent
    _pairs_are_whole(sent)
    reducible = sum(
        item_tokens(items[i]) for i in inviolable(items) if not isinstance(items[i], ToolResultItem)
    )
    results = sum(200 for i in inviolable(items) if isinstance(items[i], ToolResultItem))
    if reducible + results + 40 <= room.limit:
        used = room.frame + room.reserve + sum(map(item_tokens, sent))
        assert used <= (1 - FREE) * room.window + 1, "a tenth of the window is free"


@given(st.data())
def test_a_cut_never_parts_a_call_from_its_result(data: st.DataObject) -> None:
    room = data.draw(rooms())
    items = data.draw(long_histories(room.window))
    plan = plan_compaction(items, room, protect=data.draw(st.integers(0, 40)), weigh=item_tokens)
    if isinstance(plan, Cut):
        assert plan.at in starts(items)
        _pairs_are_whole(compacted(items, plan.at, "Notes."))
        pending = pending_calls(items)
        assert not pending or plan.at <= pending.start, "the model has not seen these answered yet"


@given(items=legal(), room=rooms(), words=WORDS)
def test_a_person_may_compress_at_any_time(items: tuple[Item, ...], room: Room, words: str) -> None:
    plan = plan_compaction(items, room, protect=20, weigh=item_tokens, forced=True)
    if isinstance(plan, Cut):
        live = compacted(items, plan.at, words)
        question = last_question(items)
        assert question is None or items[question] in live
    again = plan_compaction(
        compacted(items, len(items), ""), room, protect=20, weigh=item_tokens, forced=True
    )
    assert isinstance(again, Trim), "nothing is left to be summarised"


def test_with_room_nothing_happens() -> None:
    items = (UserItem("hello"), AssistantItem("hi"))
    assert plan_compaction(items, Room(4_096), protect=20, weigh=item_tokens) == Nothing()


def test_the_protected_messages_stay_while_they_fit() -> None:
    items = [UserItem("word " * 50) if n % 2 == 0 else AssistantItem("word " * 50) for n in range(200)]
    plan = plan_compaction(items, Room(12_000), protect=20, weigh=item_tokens)
    assert isinstance(plan, Cut)
    assert plan.at <= 180
    assert is_person(items[plan.at])


def test_the_protected_messages_become_fewer_where_the_window_is_small() -> None:
    items = [UserItem("word " * 100) if n % 2 == 0 else AssistantItem("word " * 100) for n in range(60)]
    plan = plan_compaction(items, Room(4_096), protect=40, weigh=item_tokens)
    assert isinstance(plan, Cut)
    assert 20 < plan.at < 60


def test_old_results_are_shortened_before_anything_is_summarised() -> None:
    items: list[Item] = []
    for number in range(6):
        call = ToolCall(f"c{number}", "read", "{}")
        items += [
            UserItem("Read."),
            AssistantItem("", (call,)),
            ToolResultItem(call.call_id, "read", "word " * 2_000),
        ]
        items.append(AssistantItem("Done."))
    items.append(UserItem("And now?"))
    plan = plan_compaction(items, Room(16_000), protect=20, weigh=item_tokens)
    assert plan == Shorten(1_000, len(items))


def test_a_long_turn_is_summarised_behind_its_own_question() -> None:
    items: list[Item] = [UserItem("Look into all of it.")]
    for number in range(60):
        call = ToolCall(f"c{number}", "read", "{}")
        items += [
            AssistantItem("thinking " * 30, (call,)),
            ToolResultItem(call.call_id, "read", "word " * 60),
        ]
    plan = plan_compaction(items, Room(8_000), protect=10, weigh=item_tokens)
    assert isinstance(plan, Cut)
    live = compacted(items, plan.at, "Notes.")
    assert live[:2] == (summary_note("Notes."), items[0])
    assert isinstance(live[2], AssistantItem)


def _pairs_are_whole(items: tuple[Item, ...]) -> None:
    waiting: list[str] = []
    for item in items:
        if isinstance(item, ToolResultItem):
            assert item.call_id in waiting, "a result without its call"
            waiting.remove(item.call_id)
        else:
            assert not waiting, "a call without its result"
            waiting = [c.call_id for c in item.tool_calls] if isinstance(item, AssistantItem) else []
