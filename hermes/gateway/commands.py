"""Control commands: answered at once, out of lane, whatever runs (R12). One registry feeds /help and the CLI."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from hermes.core.clock import Clock
from hermes.core.events import MessageEvent
from hermes.core.ids import SessionId
from hermes.core.ports import MenuEntry
from hermes.core.principals import Role
from hermes.core.records import InboxRow, OutboxRow, Outcome
from hermes.core.stores import Inbox, Turns
from hermes.gateway.goals import GoalKeeper
from hermes.gateway.questions import Questions
from hermes.gateway.replies import PlatformReplies
from hermes.gateway.usage import UsageBook
from hermes.policy.routing import Command


@dataclass(frozen=True, slots=True)
class CommandCall:
    """One command as it came."""

    row: InboxRow
    session: SessionId
    event: MessageEvent
    argument: str
    role: Role = Role.USER


Handler = Callable[[CommandCall], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class CommandSpec:
    """A command's name, its line in /help, and what it does; ``acts`` ones are refused when stale (R9).

    ``least``: whoever is less than this is not heard.
    """

    name: str
    help: str
    handler: Handler
    acts: bool = True
    least: Role = Role.USER


class Commands:
    """The registry and its shell."""

    def __init__(
        self,
        inbox: Inbox,
        turns: Turns,
        questions: Questions,
        replies: PlatformReplies,
        clock: Clock,
        *,
        stop_turn: Callable[[SessionId], bool],
        wake: Callable[[SessionId], None],
        status: Callable[[], Awaitable[str]],
        model: Callable[[], str],
    ) -> None:
        self._inbox = inbox
        self._turns = turns
        self._questions = questions
        self._replies = replies
        self._clock = clock
        self._stop_turn = stop_turn
        self._wake = wake
        self._status = status
        self._model = model
        self.goals: GoalKeeper | None = None
        specs = (
            CommandSpec("help", "this list", self._help, acts=False, least=Role.GUEST),
            CommandSpec("start", "say hello", self._start, acts=False, least=Role.GUEST),
            CommandSpec("stop", "stop what I am doing and drop what is queued", self._stop, least=Role.GUEST),
            CommandSpec("steer", "TEXT – say something while I work", self._needs_text, acts=False, least=Role.GUEST),
            CommandSpec("queue", "TEXT – ask something that waits", self._needs_text, acts=False, least=Role.GUEST),
            CommandSpec("status", "how the gateway is doing", self._status_of, acts=False),
            CommandSpec("new", "begin a new conversation", self._new, least=Role.GUEST),
            CommandSpec("reset", "the same as /new", self._new, least=Role.GUEST),
            CommandSpec("model", "which model answers", self._model_of, acts=False),
        )
        self.specs: dict[str, CommandSpec] = {s.name: s for s in specs}

    def add(self, *specs: CommandSpec) -> None:
        """More commands, by the part that carries them out. Where one runs, ``policy.routing`` says."""
        self.specs.update((s.name, s) for s in specs)

    def knows(self, name: str) -> bool:
        """Whether a command of that name exists; others are ordinary text for the model."""
        return name in self.specs

    def menu(self) -> list[MenuEntry]:
        """The registry as platforms show it."""
        return [MenuEntry(spec.name, spec.help) for spec in self.specs.values() if spec.name != "start"]

    async def run(
        self,
        row: InboxRow,
        session: SessionId,
        event: MessageEvent,
        command: Command,
        *,
        stale: bool,
        role: Role = Role.USER,
    ) -> list[OutboxRow]:
        """Carries it out, ends the row as ``command`` and returns the line to be delivered."""
        spec = self.specs[command.name]
        if role < spec.least:
            return await self._inbox.finish([row.id], Outcome.IGNORED, now=self._clock.now(), reason="role")
        if stale and spec.acts:
            text = f"/{spec.name} arrived while I was away, so I did not carry it out. Send it again if you want it."
        else:
            text = await spec.handler(CommandCall(row, session, event, command.argument, role))
        return await self._inbox.finish(
            [row.id],
            Outcome.COMMAND,
            now=self._clock.now(),
            reason=spec.name,
            replies=(self._replies.reply(event.address, session, text),),
        )

    async def _help(self, call: CommandCall) -> str:
        heard = [s for s in self.specs.values() if s.least <= call.role and s.name != "start"]
        lines = [f"/{s.name} – {s.help}" for s in heard]
        return "Write to me as to a person. Commands:\n\n" + "\n".join(lines)

    async def _start(self, call: CommandCall) -> str:
        return "Hello. Write to me as to a person; /help lists the commands."

    async def _stop(self, call: CommandCall) -> str:
        """R14: the line is this row's sequence; the turn's own lane writes its end."""
        paused = await self.goals.pause(call.session) if self.goals is not None else False
        stopped = await self._turns.stop(call.session, call.row.id, self._clock.now())
        suspended = await self._questions.withdraw(call.session)
        running = self._stop_turn(call.session)
        if suspended:
            self._wake(call.session)
        parts = []
        if running or suspended or stopped.running:
            parts.append("stopped the current answer")
        if stopped.withdrawn:
            parts.append("took back an answer that was not sent yet")
        if stopped.queued:
            parts.append(f"dropped {stopped.queued} queued message{'s' if stopped.queued > 1 else ''}")
        if paused:
            parts.append("paused the goal")
        return "Nothing was running." if not parts else (", ".join(parts)).capitalize() + "."

    async def _needs_text(self, call: CommandCall) -> str:
        """With a text it is a message and does not come here."""
        return "Write what you want to say behind it, e.g. /steer use the second file."

    async def _status_of(self, call: CommandCall) -> str:
        goal = await self.goals.status(call.session) if self.goals is not None else ""
        return "\n".join(filter(None, (await self._status(), goal)))

    async def _new(self, call: CommandCall) -> str:
        await self._turns.new_generation(call.session, self._clock.now())
        return "A new conversation begins. What was said before is kept and can still be searched."

    async def _model_of(self, call: CommandCall) -> str:
        return self._model()


def money_commands(usage: UsageBook, goals: GoalKeeper) -> tuple[CommandSpec, ...]:
    """/usage and /goal."""

    async def show_usage(call: CommandCall) -> str:
        return await usage.text(call.session, call.row.principal_id)

    async def goal(call: CommandCall) -> str:
        return await goals.command(call.session, call.row.principal_id, call.event, call.argument)

    return (
        CommandSpec("usage", "what calls cost, what is left of budgets", show_usage, acts=False, least=Role.GUEST),
        CommandSpec("goal", "TEXT – work on something until it is reached; pause, resume, clear", goal),
    )
