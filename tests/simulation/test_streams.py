"""Streams that break, stall, stop short or say nothing: the person reads one answer, the transcript is true."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pytest

from hermes.agent.endings import CUT_OFF
from hermes.core.errors import ProviderFailure
from hermes.core.failures import FailureFacts, FaultKind, Phase
from hermes.core.ports import ToolRun
from hermes.core.records import ToolEffect
from hermes.core.transcript import (
    AssistantItem,
    FinishReason,
    ModelReply,
    ModelRequest,
    ToolSpec,
    Usage,
    UserItem,
    load_item,
)
from hermes.policy.streams import CONTINUE
from tests.simulation.outside import ScriptedModel
from tests.simulation.world import World

pytestmark = pytest.mark.simulation
Make = Callable[..., World]


@dataclass(frozen=True)
class Says:
    """Streams ``pieces``, one each half second, then ends as ``ends`` says: None is a full stop."""

    pieces: Sequence[str]
    ends: FaultKind | None = None


class Talker(ScriptedModel):
    """Streams its script; keeps each attempt's ``on_text``, as a connection nobody closed would."""

    def __init__(self, *script: Says) -> None:
        super().__init__()
        self.says = list(script)
        self.left: list[Callable[[str], None]] = []

    async def complete(self, request: ModelRequest, on_text: Callable[[str], None]) -> ModelReply:
        self.requests.append(request)
        self.left.append(on_text)
        says = self.says.pop(0) if len(self.says) > 1 else self.says[0]
        for piece in says.pieces:
            await asyncio.sleep(0.5)
            on_text(piece)
        await asyncio.sleep(0.5)
        text = "".join(says.pieces)
        if says.ends is not None:
            body = {"partial_text": text} if says.ends is FaultKind.TRUNCATED_ANSWER else None
            raise ProviderFailure(
                FailureFacts(says.ends, Phase.STREAM, "sim", "m", body=body, tokens_seen=True)
            )
        return ModelReply(text, (), FinishReason.STOP, Usage(10, 5), request.model)


@pytest.fixture
def talk(make: Make) -> Callable[..., World]:
    def new(*script: Says, **how: object) -> World:
        world = make(**how)
        world.model = Talker(*script)
        return world

    return new


def transcript(world: World) -> list[object]:
    return [load_item(item) for (item,) in world.rows("SELECT item FROM messages ORDER BY seq")]


def limited(*pieces: str) -> Says:
    return Says(pieces, FaultKind.TRUNCATED_ANSWER)


# ---- cut and retried ----


def test_a_stream_cut_after_its_draft_was_shown_is_edited_into_the_one_answer(talk: Make) -> None:
    world = talk(Says(["Half ", "of ", "it "], FaultKind.CUT), Says(["The whole ", "answer."]))
    world.say("hi")
    world.run(2.5)
    assert [text[:4] for text in world.heard()] == ["Half"], "the draft stood in the chat before the cut"
    world.run(60)
    assert world.heard() == ["The whole answer."]
    assert len(world.server.sends) == 1, "never a second message"
    assert [type(i) for i in transcript(world)] == [UserItem, AssistantItem]


def test_pieces_of_an_attempt_that_is_over_go_nowhere(talk: Make) -> None:
    world = talk(Says(["Half "], FaultKind.STALLED), Says(["The ", "whole ", "answer."]))
    world.say("hi")
    world.run(7.2)
    assert len(world.model.left) == 2, "the second attempt streams"
    world.model.left[0]("LATE")
    world.run(1.2)
    assert world.heard()
    assert "LATE" not in world.heard()[0]
    world.run(60)
    assert world.heard() == ["The whole answer."]


# ---- cut off by the output limit ----


def test_an_answer_cut_off_by_the_limit_is_continued_into_one_item(talk: Make) -> None:
    world = talk(limited("The quick bro"), Says(["brown fox ", "jumps."]))
    world.say("hi")
    assert world.run(60).heard() == ["The quick brown fox jumps."]
    assert len(world.server.sends) == 1
    asked = world.model.requests[1].items
    assert asked[-2] == AssistantItem("The quick ", finish=FinishReason.LENGTH, model="m")
    assert asked[-1] == UserItem(CONTINUE, note=True)
    [said, answered] = transcript(world)
    assert isinstance(said, UserItem)
    assert CONTINUE not in said.text
    assert isinstance(answered, AssistantItem)
    assert (answered.text, answered.finish) == ("The quick brown fox jumps.", FinishReason.STOP)
    assert world.outcomes() == [("hi", "answered")]
    assert world.rows("SELECT output_tokens FROM ledger")[0][0] > 5, "both parts are paid for"


def test_what_a_continuation_repeats_stands_once(talk: Make) -> None:
    world = talk(
        limited("First of all, the weather is fine. Second"), Says(["the weather is fine. ", "Secondly, no."])
    )
    world.say("hi")
    assert world.run(60).heard() == ["First of all, the weather is fine. Secondly, no."]


def test_an_answer_without_end_is_continued_a_bounded_number_of_times(talk: Make) -> None:
    world = talk(*[limited(f"part {n} ") for n in range(1, 9)])
    world.say("hi")
    world.run(120)
    assert len(world.model.requests) == 1 + 3
    assert world.heard() == [f"part 1 part 2 part 3 part 4 \n\n{CUT_OFF}"]


def test_continuing_can_be_switched_off(talk: Make) -> None:
    world = talk(limited("part 1 "), settings={"agent": {"max_continuations": 0}})
    world.say("hi")
    world.run(60)
    assert len(world.model.requests) == 1
    assert world.heard() == [f"part 1 \n\n{CUT_OFF}"]


def test_a_model_that_has_nothing_to_add_ends_the_answer(talk: Make) -> None:
    world = talk(limited("All there is to say"), Says([], FaultKind.EMPTY_ANSWER))
    world.say("hi")
    assert world.run(60).heard() == [f"All there is to say\n\n{CUT_OFF}"]
    assert len(world.model.requests) == 2


def test_a_continuation_that_keeps_failing_leaves_the_part_that_is_there(talk: Make) -> None:
    world = talk(limited("Something at least"), Says(["und"], FaultKind.CUT))
    world.say("hi")
    world.run(300)
    assert world.heard() == [f"Something at least\n\n{CUT_OFF}"]
    assert world.outcomes() == [("hi", "answered")]
    assert len(world.model.requests) == 1 + 1 + 3 + 1, "the retries of one call, and one over a new transport"


def test_a_continuation_that_breaks_once_is_asked_for_again(talk: Make) -> None:
    world = talk(limited("The quick bro"), Says(["brown "], FaultKind.CUT), Says(["brown ", "fox."]))
    world.say("hi")
    assert world.run(60).heard() == ["The quick brown fox."]
    assert len(world.server.sends) == 1


def test_continuing_ends_with_the_turns_time(talk: Make) -> None:
    slow = [limited(*[f"{n}.{k} " for k in range(30)]) for n in range(9)]
    world = talk(*slow, settings={"agent": {"turn_deadline": 20}})
    world.say("hi")
    world.run(120)
    assert len(world.model.requests) <= 2
    assert [outcome for _, outcome in world.outcomes()] != [""]


# ---- half calls and empty answers ----


class Danger:
    """A tool that must not run."""

    effect = ToolEffect.ONCE
    spec = ToolSpec("danger", "Does something once.", {"type": "object", "properties": {}})

    def __init__(self) -> None:
        self.runs = 0

    async def run(self, arguments: Mapping[str, object], context: ToolRun) -> str:
        self.runs += 1
        return "done"


def test_a_half_tool_call_is_never_run_and_is_told(talk: Make) -> None:
    tool = Danger()
    world = talk(Says(["I will "], FaultKind.TRUNCATED_TOOL_CALL), tools=[tool])
    world.say("do it")
    world.run(120)
    assert tool.runs == 0
    assert world.rows("SELECT count(*) FROM journal WHERE kind='tool'") == [(0,)]
    assert len(world.heard()) == 1
    assert "tool call" in world.heard()[0]
    assert len(world.model.requests) == 2


def test_empty_answers_are_asked_for_again_twice_with_pauses_and_leave_nothing(talk: Make) -> None:
    world = talk(Says([], FaultKind.EMPTY_ANSWER))
    world.say("hi")
    world.run(120)
    assert len(world.model.requests) == 1 + 2
    assert len(world.heard()) == 1
    assert "empty answer" in world.heard()[0]
    assert [type(i) for i in transcript(world)] == [UserItem], "nothing synthetic is kept"
    world.model.says = [Says(["Here."])]
    world.say("and now?")
    assert world.run(60).heard()[1:] == ["Here."]
