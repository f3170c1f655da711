"""Who may talk, which session a message belongs to, what is a command, what an edit does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.core.people import PairingPolicy
from hermes.core.principals import ChatKind, ChatRef, Identity, Role
from hermes.policy.access import AccessPolicy, Allow, Ignore, Pair, authorise, heeds
from hermes.policy.edits import AddNote, IgnoreEdit, OriginalState, ReplaceText, decide_edit
from hermes.policy.pairing import code_of, digest_of, may_offer
from hermes.policy.routing import (
    IN_LANE,
    MESSAGE_WHEN_STALE,
    OUT_OF_LANE,
    Command,
    Lane,
    command_is_stale,
    lane_of,
    parse_command,
    session_key,
    text_when_stale,
)

ANNA = Identity("telegram", "bot1", "42", "Anna")
BOT = Identity("telegram", "bot1", "43", "Helper", is_bot=True)
US = Identity("telegram", "bot1", "bot1", "We")
NOBODY = Identity("telegram", "bot1", "")
PRIVATE = ChatRef("telegram", "bot1", "42", None, ChatKind.PRIVATE)
GROUP = ChatRef("telegram", "bot1", "-7", None, ChatKind.GROUP)
LISTED = AccessPolicy(allowed_users=frozenset({"42"}))
TWO = AccessPolicy(allowed_users=frozenset({"42", "1"}))
BEARER = Identity("telegram", "bot1", "42", "Anna", roles=frozenset({"r1"}))
OPEN = AccessPolicy(allow_all=True)
PAIRING = AccessPolicy(pairing=True)


@pytest.mark.parametrize(
    ("policy", "identity", "chat", "answer"),
    [
        (AccessPolicy(), ANNA, PRIVATE, Ignore("stranger")),
        (LISTED, ANNA, PRIVATE, Allow(Role.OWNER)),
        (LISTED, ANNA, GROUP, Allow(Role.OWNER)),
        (TWO, ANNA, PRIVATE, Allow(Role.USER)),
        (AccessPolicy(allowed_users=frozenset({"42"}), owners=frozenset({"1"})), ANNA, PRIVATE, Allow(Role.USER)),
        (AccessPolicy(guests=frozenset({"42"})), ANNA, PRIVATE, Allow(Role.GUEST)),
        (AccessPolicy(guests=frozenset({"42"}), allowed_users=frozenset({"42", "1"})), ANNA, PRIVATE, Allow(Role.USER)),
        (AccessPolicy(allowed_roles=frozenset({"r1"})), BEARER, GROUP, Allow(Role.USER)),
        (AccessPolicy(allowed_roles=frozenset({"r2"})), BEARER, GROUP, Ignore("stranger")),
        (AccessPolicy(allowed_chats=frozenset({"-7"})), ANNA, GROUP, Allow(Role.USER)),
        (AccessPolicy(allowed_chats=frozenset({"-7"})), ANNA, PRIVATE, Ignore("stranger")),
        (AccessPolicy(allowed_chats=frozenset({"-7"})), BOT, GROUP, Ignore("bot")),
        (LISTED, Identity("telegram", "bot1", "44"), GROUP, Ignore("stranger")),
        (AccessPolicy(owners=frozenset({"42"})), ANNA, PRIVATE, Allow(Role.OWNER)),
        (OPEN, ANNA, GROUP, Allow()),
        (OPEN, BOT, GROUP, Ignore("bot")),
        (AccessPolicy(allowed_users=frozenset({"43"})), BOT, GROUP, Ignore("bot")),
        (OPEN, US, PRIVATE, Ignore("ourselves")),
        (OPEN, NOBODY, GROUP, Ignore("stranger")),
        (AccessPolicy(allowed_users=frozenset({""})), NOBODY, GROUP, Ignore("stranger")),
        (PAIRING, ANNA, PRIVATE, Pair()),
        (PAIRING, ANNA, GROUP, Ignore("stranger")),
    ],
)
def test_nobody_talks_unless_a_rule_allows(
    policy: AccessPolicy, identity: Identity, chat: ChatRef, answer: Allow | Pair | Ignore
) -> None:
    assert authorise(policy, identity, chat) == answer


def test_who_was_let_in_by_a_code_talks_as_what_they_were_let_in() -> None:
    assert authorise(PAIRING, ANNA, PRIVATE, paired=Role.GUEST) == Allow(Role.GUEST)
    assert authorise(PAIRING, ANNA, GROUP, paired=Role.USER) == Allow(Role.USER)
    assert authorise(PAIRING, BOT, PRIVATE, paired=Role.USER) == Ignore("bot")


@pytest.mark.parametrize(
    ("policy", "chat", "addressed", "heard"),
    [
        (LISTED, PRIVATE, False, True),
        (LISTED, GROUP, False, False),
        (LISTED, GROUP, True, True),
        (AccessPolicy(require_mention=False), GROUP, False, True),
        (AccessPolicy(free_chats=frozenset({"-7"})), GROUP, False, True),
        (AccessPolicy(free_chats=frozenset({"-8"})), GROUP, False, False),
    ],
)
def test_in_a_group_only_what_is_meant_for_the_bot_is_heard(
    policy: AccessPolicy, chat: ChatRef, addressed: bool, heard: bool
) -> None:
    assert heeds(policy, chat, addressed=addressed) is heard


def test_a_code_is_known_however_it_is_typed_and_nothing_else_is_one() -> None:
    code = code_of([0, 1, 2, 3, 31, 30, 29, 28])
    assert code == "2345-ZYXW"
    assert digest_of("2345zyxw") == digest_of(" 2345 - ZYXW ") == digest_of(code) is not None
    assert [digest_of(t) for t in ("", "2345", "2345-ZYX0", "2345-ZYXWW", "hello")] == [None] * 5


@pytest.mark.parametrize(
    ("last", "pending", "offered"), [(None, 0, True), (None, 2, False), (90.0, 0, False), (40.0, 1, True)]
)
def test_a_code_is_offered_within_bounds(last: float | None, pending: int, offered: bool) -> None:
    policy = PairingPolicy(valid_for=60.0, every=60.0, pending=2)
    assert may_offer(policy, last_offer=last, pending=pending, now=100.0) is offered


IDS = st.text(alphabet=":%=tu1-", min_size=1, max_size=5)
CHATS = st.builds(ChatRef, IDS, IDS, IDS, st.none() | IDS, st.just(ChatKind.GROUP))


@given(CHATS, CHATS, IDS, IDS, st.booleans())
def test_two_places_never_share_a_session(
    one: ChatRef, two: ChatRef, u1: str, u2: str, per_user: bool
) -> None:
    def key(chat: ChatRef, user: str) -> str:
        identity = Identity(chat.platform, chat.account, user)
        return session_key(chat, identity, group_sessions_per_user=per_user)

    same = one == two and (u1 == u2 or not per_user)
    assert (key(one, u1) == key(two, u2)) is same


def test_a_private_chat_and_a_channel_have_one_session_each() -> None:
    assert session_key(PRIVATE, ANNA, group_sessions_per_user=True) == "telegram:bot1:42"
    channel = ChatRef("slack", "b", "C1", "17.5", ChatKind.CHANNEL)
    assert session_key(channel, ANNA, group_sessions_per_user=True) == "slack:b:C1:t=17.5"
    assert session_key(GROUP, ANNA, group_sessions_per_user=True) == "telegram:bot1:-7:u=42"


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("/stop", Command("stop")),
        ("  /STOP  ", Command("stop")),
        ("/stop@Hermes_Bot now please", Command("stop", "now please")),
        ("/stop@other_bot", None),
        ("/queue first\nsecond", Command("queue", "first\nsecond")),
        ("/etc/hosts is broken", None),
        ("/ stop", None),
        ("please /stop", None),
        ("/stop, now", None),
        ("//stop", None),
        ("", None),
        ("/made-up x", Command("made_up", "x")),
    ],
)
def test_a_command_stands_at_the_beginning_and_is_ours(text: str, command: Command | None) -> None:
    assert parse_command(text, "@hermes_bot") == command


@given(st.text(max_size=60))
def test_no_text_makes_the_parser_raise(text: str) -> None:
    found = parse_command("/" + text)
    assert found is None or found.name == found.name.lower()


def test_control_commands_run_beside_the_lane_and_the_others_in_it() -> None:
    assert {"stop", "status", "approve", "deny", "queue", "steer", "help"} <= OUT_OF_LANE
    assert not OUT_OF_LANE & IN_LANE
    assert lane_of(Command("stop")) is Lane.OUT
    assert lane_of(Command("compress")) is Lane.IN
    assert lane_of(Command("nonsense")) is None
    assert MESSAGE_WHEN_STALE <= OUT_OF_LANE


@pytest.mark.parametrize(
    ("sent_at", "ready_at", "now", "stale"),
    [
        (100.0, 50.5, 101.0, False),
        (50.0, 50.5, 51.0, False),  # whole seconds of the platform's clock
        (49.0, 50.5, 51.0, True),
        (100.0, 50.0, 400.0, False),
        (100.0, 50.0, 400.1, True),
        (105.0, 50.0, 100.0, False),
    ],
)
def test_a_command_from_before_we_were_ready_or_older_than_five_minutes_is_stale(
    sent_at: float, ready_at: float, now: float, stale: bool
) -> None:
    assert command_is_stale(sent_at, ready_at, now) is stale


def test_a_stale_queue_or_steer_is_an_ordinary_message() -> None:
    assert text_when_stale(Command("queue", "buy milk")) == "buy milk"
    assert text_when_stale(Command("steer", "")) is None
    assert text_when_stale(Command("stop", "now")) is None


@pytest.mark.parametrize(
    ("state", "old", "new", "kind"),
    [
        (OriginalState.WAITING, "helo", "hello", ReplaceText),
        (OriginalState.WAITING, None, "/stop", ReplaceText),
        (OriginalState.IN_TURN, "helo", "hello", AddNote),
        (OriginalState.ANSWERED, "helo", "hello", AddNote),
        (OriginalState.ANSWERED, "hello", "hello ", IgnoreEdit),
        (OriginalState.OTHER, "/stop", "/restart", IgnoreEdit),
        (OriginalState.UNKNOWN, None, "hello", IgnoreEdit),
    ],
)
def test_an_edit_replaces_before_the_turn_and_is_a_note_after(
    state: OriginalState, old: str | None, new: str, kind: type[object]
) -> None:
    assert isinstance(decide_edit(state, old, new), kind)


def test_a_long_edit_makes_a_short_note() -> None:
    decision = decide_edit(OriginalState.ANSWERED, "a", "x" * 100_000)
    assert isinstance(decision, AddNote)
    assert len(decision.note) < 2200
