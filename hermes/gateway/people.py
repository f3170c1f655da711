"""Letting people in: offers to strangers, approval by an owner from chat or command line, joining identities."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import replace

from hermes.core.clock import Clock
from hermes.core.errors import StoreUnavailable, TargetUnknown
from hermes.core.events import Address, RawUpdate
from hermes.core.people import Offer, Paired, PairingPolicy, PeopleStore
from hermes.core.principals import ChatKind, Role
from hermes.core.records import OutboxRow, Priority
from hermes.core.stores import Outbox
from hermes.gateway.commands import CommandCall, CommandSpec
from hermes.gateway.ingest import AccessBook
from hermes.gateway.replies import PlatformReplies
from hermes.policy.pairing import ALPHABET, CODE_LENGTH, code_of, digest_of
from hermes.runtime.logs import get_logger
from hermes.runtime.supervisor import Supervisor

log = get_logger(__name__)

OFFERED = (
    "I do not know you yet. If you know who runs me, give them this code: {code}\n"
    "It is good for {minutes:.0f} minutes. They let you in with /pair {code}."
)
WELCOME = "You may talk to me now. Write to me as to a person; /help lists the commands."
LINK = (
    "Write this to me from your other account within {minutes:.0f} minutes: /pair {code}\n"
    "Both are one person to me then: one list of conversations, one budget."
)
USAGE = (
    "/pair CODE lets in the person who was shown the code, or joins this account to the one that made it; "
    "/pair new makes one."
)


class People:
    """Owns who was paired: the store keeps it, the access book obeys it."""

    def __init__(
        self,
        store: PeopleStore,
        access: AccessBook,
        outbox: Outbox,
        replies: PlatformReplies,
        clock: Clock,
        supervisor: Supervisor,
        offer: Callable[[Sequence[OutboxRow]], None],
        policy: PairingPolicy,
    ) -> None:
        self._store = store
        self._access = access
        self._outbox = outbox
        self._replies = replies
        self._clock = clock
        self._supervisor = supervisor
        self._offer = offer
        self.policy = policy

    @property
    def specs(self) -> tuple[CommandSpec, ...]:
        """For the registry."""
        help_line = "CODE – let somebody in, or join your accounts (/pair new)"
        return (CommandSpec("pair", help_line, self._pair, least=Role.GUEST),)

    async def load(self) -> None:
        """Those who were let in by earlier processes."""
        self._access.paired = {(p.platform, p.account, p.user_id): p.role for p in await self._store.paired()}

    def knocked(self, update: RawUpdate) -> None:
        """A stranger wrote where pairing is on; not a word of it is kept. Returns at once."""
        self._supervisor.spawn(self._show_code(update), "pairing offer")

    async def _show_code(self, update: RawUpdate) -> None:
        identity, chat = update.identity, update.chat
        if identity is None or chat is None:
            return
        code = new_code()
        digest = digest_of(code)
        assert digest is not None
        now = self._clock.now()
        try:
            if not await self._store.offer(identity, chat, digest, self.policy, now):
                return
            address = Address(chat.platform, chat.account, chat.chat_id, chat.thread_id)
            text = OFFERED.format(code=code, minutes=self.policy.valid_for / 60.0)
            await self._say(address, text, now + self.policy.valid_for)
        except StoreUnavailable as error:
            log.warning("pairing_not_offered", platform=chat.platform, error=str(error))

    async def approve(self, typed: str, by: str, role: Role = Role.USER) -> Offer | None:
        """Lets in whoever was shown this code, and tells them."""
        digest, now = digest_of(typed), self._clock.now()
        offer = await self._store.approve(digest, role, by, now) if digest is not None else None
        if offer is None:
            return None
        self._access.paired[offer.platform, offer.account, offer.user_id] = role
        log.info("paired", platform=offer.platform, user=offer.user_id, role=role.name.lower(), by=by)
        await self._say(Address(offer.platform, offer.account, offer.chat_id), WELCOME, now + 3600.0)
        return offer

    async def revoke(self, platform: str, user_id: str) -> Sequence[Paired]:
        """They are strangers again; what they have queued does not run any more (R6)."""
        gone = await self._store.revoke(platform, user_id)
        for one in gone:
            self._access.paired.pop((one.platform, one.account, one.user_id), None)
            log.info("unpaired", platform=one.platform, user=one.user_id)
        return gone

    async def overview(self) -> dict[str, object]:
        """Who waits and who was let in, as plain JSON-like values."""
        waiting = await self._store.offers(self._clock.now())
        return {
            "waiting": [
                {"platform": o.platform, "user": o.user_id, "name": o.display, "since": o.offered_at,
                 "until": o.expires_at}
                for o in waiting
            ],
            "paired": [
                {"platform": p.platform, "user": p.user_id, "name": p.display, "role": p.role.name.lower(),
                 "by": p.paired_by, "at": p.paired_at}
                for p in await self._store.paired()
            ],
        }  # fmt: skip

    async def approve_for_cli(self, typed: str, role: str) -> dict[str, object]:
        """``hermes pairing approve CODE``. Raises TargetUnknown."""
        if role not in ("user", "guest"):
            raise TargetUnknown(f"{role!r} is no role to pair as: user or guest")
        offer = await self.approve(typed, "command line", Role[role.upper()])
        if offer is None:
            raise TargetUnknown(
                "no stranger was shown this code, or it is too old; `hermes pairing list` shows who waits"
            )
        return {"platform": offer.platform, "user": offer.user_id, "name": offer.display, "role": role}

    async def revoke_for_cli(self, name: str) -> dict[str, object]:
        """``hermes pairing revoke PLATFORM:USER``. Raises TargetUnknown."""
        platform, _, user = name.partition(":")
        gone = await self.revoke(platform, user)
        if not gone:
            raise TargetUnknown(f"nobody was paired as {name!r}; `hermes pairing list` shows who was")
        return {"platform": platform, "user": user}

    async def _pair(self, call: CommandCall) -> str:
        identity, chat, typed = call.row.update.identity, call.row.update.chat, call.argument.strip()
        if identity is None or chat is None:
            return USAGE
        if chat.kind is not ChatKind.PRIVATE:
            return "Codes are for private chats: write this to me alone."
        owner = call.role is Role.OWNER
        if typed.lower() == "new":
            return await self._link_code(call)
        if not typed:
            return await self._waiting() if owner else USAGE
        digest = digest_of(typed)
        if digest is None:
            return f"That is no code: it has {CODE_LENGTH} letters and digits. {USAGE}"
        if owner and (offer := await self.approve(typed, f"{identity.platform}:{identity.user_id}")) is not None:
            return f"{offer.display or offer.user_id} ({offer.platform} {offer.user_id}) may talk to me now."
        if await self._store.link(identity, digest, self._clock.now()) is not None:
            return "This account and the one that made the code are one person to me now."
        return "I do not know this code, or it is too old."

    async def _link_code(self, call: CommandCall) -> str:
        if call.row.principal_id is None:
            return USAGE
        code, now = new_code(), self._clock.now()
        digest = digest_of(code)
        assert digest is not None
        until = now + self.policy.valid_for
        await self._store.keep_link_code(call.row.principal_id, digest, until, now)
        return LINK.format(code=code, minutes=self.policy.valid_for / 60.0)

    async def _waiting(self) -> str:
        waiting = await self._store.offers(self._clock.now())
        if not waiting:
            return f"Nobody waits to be let in. {USAGE}"
        lines = [f"{o.display or '(no name)'}, {o.platform} {o.user_id}" for o in waiting]
        return "These were shown a code; ask them for it, then /pair CODE:\n" + "\n".join(lines)

    async def _say(self, address: Address, text: str, until: float) -> None:
        notice = replace(self._replies.reply(address, None, text, Priority.NOTICE), expires_at=until)
        self._offer(await self._outbox.enqueue([notice], self._clock.now()))


def new_code() -> str:
    """A code nobody can guess."""
    return code_of([secrets.randbelow(len(ALPHABET)) for _ in range(CODE_LENGTH)])
