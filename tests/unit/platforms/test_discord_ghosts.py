"""When a gateway that acknowledges counts as deaf."""

from __future__ import annotations

from hermes.platforms.discord.ghosts import TOP, TRANSIT, Ears


def test_our_own_message_must_be_told_of_in_time_and_its_absence_is_said_once() -> None:
    ears = Ears(echo=60, audit=120, told_at=0)
    ears.said(10)
    ears.said(50)
    assert not ears.deaf(69)
    assert ears.deaf(70)
    assert not ears.deaf(71)


def test_any_event_is_a_proof() -> None:
    ears = Ears(echo=60, audit=120, told_at=0)
    ears.said(10)
    ears.told(20)
    assert not ears.deaf(1000)


def test_the_most_lively_channels_are_looked_at_in_turn_after_silence_only() -> None:
    ears = Ears(echo=60, audit=120, told_at=0)
    lively = [str(n) for n in range(20)]
    assert ears.look(119, lambda count: lively[:count]) is None
    looked = [ears.look(120.0 * n, lambda count: lively[:count]) for n in range(1, TOP + 2)]
    assert looked == [*lively[:TOP], "0"]
    assert ears.look(1e6, lambda count: []) is None


def test_only_a_look_can_find_what_was_missed_and_not_what_may_be_on_its_way() -> None:
    ears = Ears(echo=60, audit=120, told_at=0)
    assert not ears.missed("7", now=1000.0, made=[0.0])
    for made, missed in (([], False), ([1000.0 - TRANSIT], False), ([1000.0 - TRANSIT - 1], True)):
        ears.told(0)
        assert ears.look(500, lambda count: ["7"]) == "7"
        assert ears.missed("7", now=1000.0, made=made) is missed
