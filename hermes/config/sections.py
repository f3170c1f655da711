"""Sections of ``config.yaml`` that belong to the agent: turns, money, context, tools, people."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from hermes.config.fields import (
    BaseUrl,
    Complaint,
    Duration,
    Flag,
    HiddenText,
    Number,
    Ratio,
    Reload,
    Section,
    Size,
    Text,
    Texts,
    Whole,
    key,
)
from hermes.policy.busy import BusyMode
from hermes.policy.reset import ResetMode

DAY = 86_400.0


class ModelChoice(Section):
    """A model of a provider."""

    provider: Text = key("", "Name of a provider under `providers`; empty: the only or first one.")
    model: Text = key("", "Name of the model; empty: HERMES_MODEL, else the listed default of the provider.")


class Overflow(StrEnum):
    COMPACT = "compact"
    FALLBACK = "fallback"


class Budget(Section):
    """Caps in US dollars; 0 = no cap."""

    turn_usd: Number = key(0.0, "Most a turn may cost.", ge=0)
    turn_tokens: Whole = key(0, "Most tokens a turn may use, prompts and answers together.", ge=0)
    session_usd: Number = key(0.0, "Most a conversation may cost; /new begins another.", ge=0)
    user_day_usd: Number = key(0.0, "Most one person may spend a day.", ge=0)
    day_usd: Number = key(0.0, "Most all together may spend a day.", ge=0)


class AgentConfig(Section):
    """Turns and their bounds."""

    max_turns: Whole = key(40, "Most steps of one turn; HERMES_MAX_ITERATIONS overrides.", ge=1)
    api_max_retries: Whole = key(3, "Retries after the first attempt, per target.", ge=0, le=100)
    max_continuations: Whole = key(
        3, "How often an answer that the output limit cut off is asked to go on.", ge=0, le=20
    )
    max_images: Whole = key(
        20, "Most pictures of a conversation that a model is shown; the older ones are told in words.", ge=0
    )
    retry_base: Duration = key(5.0, "First wait between attempts.", gt=0)
    retry_cap: Duration = key(60.0, "Longest wait between attempts.", gt=0)
    retry_after_cap: Duration = key(
        120.0, "Longest wait a server may ask for; beyond it the next target.", gt=0
    )
    overflow: Overflow = key(
        Overflow.COMPACT,
        "What comes first for a conversation too long for its model: shortening it, or a fallback's larger window.",
    )
    turn_deadline: Duration = key(
        1800.0, "Longest active time of a turn; waiting for people does not count.", gt=0
    )
    max_concurrent_turns: Whole = key(256, "Most turns at once.", reload=Reload.PROCESS, ge=1)
    busy_mode: BusyMode = key(
        BusyMode.QUEUE, "What a message does while a turn runs: wait, steer it, or interrupt it."
    )
    merge_window: Duration = key(
        0.4, "How long the parts of an album or of a pasted text are waited for.", ge=0, le=60
    )
    queue_limit: Whole = key(20, "Most messages waiting in one session; the next is told so.", ge=1)
    queue_notice_after: Duration = key(
        3.0, "How long a message waits behind a running turn before it is told its place.", ge=0, le=3600
    )
    budget: Budget = key(Budget, "Caps on money.")

    def complaints(self) -> tuple[Complaint, ...]:
        if self.retry_base > self.retry_cap:
            return (
                Complaint(
                    "retry_base",
                    "the first wait is longer than the longest",
                    "at most retry_cap",
                    "lower retry_base or raise retry_cap",
                ),
            )
        return ()


class GoalsConfig(Section):
    max_turns: Whole = key(15, "Most turns a /goal may take by itself.", ge=1)


class CompressionConfig(Section):
    """When and how a long conversation is summarised."""

    enabled: Flag = key(True, "Whether long conversations are summarised.")
    threshold: Ratio = key(0.75, "Share of the window at which a summary is made.")
    target_ratio: Ratio = key(0.2, "Share of the window that the summary and what is kept should take.")
    protect_last_n: Whole = key(20, "Latest messages that stay as they are.", ge=0)
    provider: Text = key("", "Provider of the summarising model; empty: model.provider.")
    model: Text = key("", "The summarising model; empty: model.model.")
    max_chunk_calls: Whole = key(8, "Most calls one summary may take.", ge=1)
    timeout: Duration = key(120.0, "Longest time one summary may take.", gt=0)

    def complaints(self) -> tuple[Complaint, ...]:
        if self.target_ratio >= self.threshold:
            return (
                Complaint(
                    "target_ratio",
                    "a summary as large as what triggers it",
                    "less than threshold",
                    "lower target_ratio or raise threshold",
                ),
            )
        return ()


class LoopCounts(Section):
    exact_failure: Whole = key(2, "The same call failed this often.", ge=1)
    same_tool_failure: Whole = key(3, "One tool failed this often, whatever the arguments.", ge=1)
    idempotent_no_progress: Whole = key(2, "A reading call gave the same result this often.", ge=1)


class LoopBlockCounts(LoopCounts):
    exact_failure: Whole = key(3, "The same call failed this often.", ge=1)
    same_tool_failure: Whole = key(5, "One tool failed this often, whatever the arguments.", ge=1)
    idempotent_no_progress: Whole = key(3, "A reading call gave the same result this often.", ge=1)


class GuardrailsConfig(Section):
    """Loops of tool calls: first a warning to the model, then a block, then the end of the turn."""

    warnings_enabled: Flag = key(True, "Whether the model is warned.")
    hard_stop_enabled: Flag = key(True, "Whether calls are blocked.")
    warn_after: LoopCounts = key(LoopCounts, "Counts at which the model is warned.")
    hard_stop_after: LoopBlockCounts = key(LoopBlockCounts, "Counts at which a call is blocked.")
    halt_after_blocks: Whole = key(2, "Blocks after which the turn ends.", ge=1)


class StreamingConfig(Section):
    """Drafts of an answer under way."""

    enabled: Flag = key(True, "Whether an answer is shown while it is written.")
    first_after: Duration = key(0.5, "An answer done before this makes no draft.", ge=0)
    min_interval: Duration = key(1.0, "Shortest time between two edits of a draft.", ge=0)


class SessionResetConfig(Section):
    mode: ResetMode = key(ResetMode.NONE, "When a session starts afresh by itself.")
    at_hour: Whole = key(4, "Hour of the daily reset, in `timezone`.", ge=0, le=23)
    idle_minutes: Whole = key(1440, "Minutes of silence before an idle reset.", ge=1)


class RetentionConfig(Section):
    """How long what is kept."""

    messages: Duration = key(365 * DAY, "Conversations.", gt=0)
    inbox: Duration = key(30 * DAY, "Finished inbound rows.", gt=0)
    outbox: Duration = key(30 * DAY, "Finished outbound rows.", gt=0)
    media: Duration = key(30 * DAY, "Files sent to the bot.", gt=0)
    spill: Duration = key(7 * DAY, "Long tool output.", gt=0)
    traces: Duration = key(7 * DAY, "Traces of turns.", gt=0)
    seen_keys: Duration = key(400 * DAY, "Keys that recognise a repeated update.", gt=0)
    backups: Whole = key(7, "Backups kept.", ge=0)


class TerminalBackend(StrEnum):
    LOCAL = "local"
    NONE = "none"


class TerminalConfig(Section):
    backend: TerminalBackend = key(
        TerminalBackend.LOCAL, "local: commands run with the owner's rights; none: no terminal."
    )
    timeout: Duration = key(180.0, "Longest time of one command.", gt=0)


class ApprovalMode(StrEnum):
    MANUAL = "manual"
    DENY = "deny"
    ALLOW = "allow"


class ApprovalsConfig(Section):
    mode: ApprovalMode = key(
        ApprovalMode.MANUAL, "manual: the owner is asked; deny: refused; allow: never asked."
    )
    timeout: Duration = key(3600.0, "How long an open question waits.", gt=0)


class McpServerConfig(Section):
    """One MCP server: a child process (`command`) or an address (`url`)."""

    enabled: Flag = key(True, "Whether it is started.")
    command: Text = key("", "Program to start.")
    args: Texts = key((), "Its arguments.")
    env: Mapping[Text, HiddenText] = key(dict, "Its environment besides PATH and HOME.")
    url: BaseUrl = key("", "Address of a server that already runs.")
    headers: Mapping[Text, HiddenText] = key(dict, "Headers sent to `url`.")
    timeout: Duration = key(300.0, "Longest time of one call.", gt=0)
    connect_timeout: Duration = key(60.0, "Longest time to start or connect.", gt=0)
    required: Flag = key(False, "Whether /readyz fails without it.")

    def complaints(self) -> tuple[Complaint, ...]:
        if bool(self.command) == bool(self.url):
            found = "both command and url are given" if self.url else "neither command nor url is given"
            return (
                Complaint("", found, "one of the two", "command: for a program, url: for a running server"),
            )
        return ()


class TranscriptionConfig(Section):
    provider: Text = key("", "Provider that turns voice into text; empty: none.")
    model: Text = key("", "The model for it.")


class ToolsConfig(Section):
    """Bounds of the built-in tools."""

    roots: Texts = key((), "Folders the file tools may touch; empty: the folder `work` in HERMES_HOME.")
    timeout: Duration = key(60.0, "Longest time of a tool call that names none.", gt=0)
    guest_tools: Texts = key(("clarify",), "Tools that a turn may use in which a guest has a say.")
    max_parallel: Whole = key(8, "Most tool calls of one step at once.", ge=1)
    max_read_bytes: Size = key(256 * 1024, "Most bytes one read returns.", gt=0)
    max_write_bytes: Size = key(4 * 2**20, "Most bytes one write takes.", gt=0)
    max_result_bytes: Size = key(64 * 1024, "Longer results go to `spill/`; the model sees both ends.", gt=0)
    max_search_files: Whole = key(20_000, "Most files one search looks at.", ge=1)


class LogLevel(StrEnum):
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class OutputConfig(Section):
    """Log lines of the daemon."""

    level: LogLevel = key(LogLevel.INFO, "The least important line that is written.")
    max_bytes: Size = key(
        2**20,
        "Lines waiting for a slow reader; the oldest are dropped and counted.",
        reload=Reload.PROCESS,
        ge=4096,
    )
