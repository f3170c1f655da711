"""T1: who may talk, then on disk, then acknowledged (R1–R6). Nothing here understands a message."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from hermes.core.clock import Clock
from hermes.core.events import RawUpdate
from hermes.core.principals import ChatRef, Identity, Role
from hermes.core.records import Accepted, Admitted, InboxRow, StrangerCount
from hermes.core.stores import Inbox
from hermes.policy.access import NOT_ADDRESSED, AccessPolicy, Allow, Ignore, Pair, authorise, heeds
from hermes.policy.routing import session_key
from hermes.runtime.checkpoints import Checkpoints
from hermes.runtime.logs import get_logger

log = get_logger(__name__)

LONG_PASTE_CHARS = 4000
"""A text this long may be a client-split paste whose other half is on its way (R7)."""


def is_burst(update: RawUpdate) -> bool:
    """Whether siblings may follow: a part of an album, or a text as long as clients split at (R7)."""
    return update.merge_key is not None or len(update.raw) >= LONG_PASTE_CHARS


class AccessBook:
    """Each platform's access policy; replaced at a reload, in force at once (R42)."""

    def __init__(self, policies: Mapping[str, AccessPolicy], *, owner_platforms: frozenset[str]) -> None:
        self.policies = dict(policies)
        self.paired: dict[tuple[str, str, str], Role] = {}  # let in by an owner
        self.owner_platforms = owner_platforms  # the page and the CLI: the caller proved to be the owner

    def decide(self, identity: Identity, chat: ChatRef) -> Allow | Pair | Ignore:
        """Default deny: a platform without a policy admits nobody."""
        if identity.platform in self.owner_platforms:
            return Allow(Role.OWNER)
        policy = self.policies.get(identity.platform)
        if policy is None:
            return Ignore("no access policy")
        paired = self.paired.get((identity.platform, identity.account, identity.user_id))
        return authorise(policy, identity, chat, paired=paired)

    def heeds(self, update: RawUpdate) -> bool:
        """Whether a message in a group is meant for us; elsewhere each one is."""
        policy = self.policies.get(update.platform)
        return policy is None or update.chat is None or heeds(policy, update.chat, addressed=update.addressed)

    def may_run(self, row: InboxRow) -> bool:
        """The second look, at claim: a revoked user's queued rows do not run (R6)."""
        return self.role_of(row) is not None

    def role_of(self, row: InboxRow) -> Role | None:
        """What a row's author may do now; None: they may not talk (any more)."""
        identity, chat = row.update.identity, row.update.chat
        if identity is None or chat is None:
            return None
        answer = self.decide(identity, chat)
        return answer.role if isinstance(answer, Allow) else None


class Ingest:
    """Takes what a receive cycle brought and returns when it is on disk."""

    def __init__(
        self,
        inbox: Inbox,
        access: AccessBook,
        clock: Clock,
        checkpoints: Checkpoints,
        on_accepted: Callable[[Sequence[Accepted]], None],
        *,
        group_sessions_per_user: bool = True,
        merge_window: float = 0.4,
        on_stranger: Callable[[StrangerCount], None] = lambda stranger: None,
    ) -> None:
        self._inbox = inbox
        self._access = access
        self._clock = clock
        self._checkpoints = checkpoints
        self._on_accepted = on_accepted
        self._on_stranger = on_stranger
        self.group_sessions_per_user = group_sessions_per_user
        self.merge_window = merge_window
        self.on_knock: Callable[[RawUpdate], None] = lambda update: None
        """Told of strangers who may be offered a code; set by the part that does."""

    async def cursors(self, platform: str, account: str) -> dict[str, str]:
        """Where an account's channels were read up to. Raises StoreUnavailable."""
        return await self._inbox.cursors(platform, account)

    def keys_of(self, row: InboxRow) -> tuple[str, ...]:
        """The name under which the session of a row's chat is found."""
        identity, chat = row.update.identity, row.update.chat
        if identity is None or chat is None:
            return ()
        return (session_key(chat, identity, group_sessions_per_user=self.group_sessions_per_user),)

    async def accept(
        self, updates: Sequence[RawUpdate], cursors: Mapping[str, str] | None = None
    ) -> list[Accepted]:
        """T1 for a batch, in order. Raises StoreUnavailable: then nothing may be acknowledged."""
        admitted: list[Admitted] = []
        strangers: dict[tuple[str, str, str], StrangerCount] = {}
        ignored: dict[str, int] = defaultdict(int)
        for update in updates:
            self._sort(update, admitted, strangers, ignored)
        if not admitted and not strangers and not cursors:
            return []
        self._checkpoints.reach("before_t1")
        accepted = await self._inbox.accept(
            admitted, tuple(strangers.values()), cursors or {}, self._clock.now()
        )
        self._checkpoints.reach("after_t1")
        for stranger in strangers.values():
            self._on_stranger(stranger)
        self._on_accepted([a for a in accepted if not a.duplicate])
        return accepted

    def _sort(
        self,
        update: RawUpdate,
        admitted: list[Admitted],
        strangers: dict[tuple[str, str, str], StrangerCount],
        ignored: dict[str, int],
    ) -> None:
        identity, chat = update.identity, update.chat
        if identity is None or chat is None:
            admitted.append(Admitted(update, None))  # unreadable: kept as a dead letter (R1)
            return
        try:
            answer = self._access.decide(identity, chat)
        except Exception as error:  # R26: ingest, per row: one odd update must not stop its batch
            log.error("ingest_fault", platform=update.platform, error=repr(error))
            admitted.append(Admitted(replace(update, problem=f"access check failed: {error!r}"), None))
            return
        match answer:
            case Allow() if not self._access.heeds(update):
                ignored[NOT_ADDRESSED] += 1
            case Allow():
                hint = "owner" if update.platform in self._access.owner_platforms else None
                key = session_key(chat, identity, group_sessions_per_user=self.group_sessions_per_user)
                admitted.append(Admitted(update, key, hint, self.merge_window if is_burst(update) else 0.0))
            case Pair() | Ignore("stranger"):
                if isinstance(answer, Pair):
                    self.on_knock(update)
                known = (identity.platform, identity.account, identity.user_id)
                count = strangers[known].count + 1 if known in strangers else 1
                strangers[known] = StrangerCount(*known, count, self._clock.now(), chat)
            case Ignore(reason):
                ignored[reason] += 1
