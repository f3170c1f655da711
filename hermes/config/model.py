"""The whole of ``config.yaml`` as one frozen object."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import SerializeAsAny

from hermes.config.adapters import PlatformConfig, ProviderConfig
from hermes.config.fields import Name, Reload, Section, Text, TimeZone, key
from hermes.config.gateway import GatewayConfig
from hermes.config.sections import (
    AgentConfig,
    ApprovalsConfig,
    CompressionConfig,
    GoalsConfig,
    GuardrailsConfig,
    McpServerConfig,
    ModelChoice,
    OutputConfig,
    RetentionConfig,
    SessionResetConfig,
    StreamingConfig,
    TerminalConfig,
    ToolsConfig,
    TranscriptionConfig,
)


class Config(Section):
    """What the gateway runs with. Made by ``hermes.config.load``, which fills in models and variables."""

    timezone: TimeZone = key("", "Time zone of schedules and prompts; empty: the system's.")
    model: ModelChoice = key(ModelChoice, "The model that answers.")
    providers: Mapping[Text, SerializeAsAny[ProviderConfig]] = key(
        dict, "Model providers by a name of your own.", reload=Reload.LINK
    )
    fallback_providers: tuple[ModelChoice, ...] = key((), "Models tried in order when the first one fails.")
    agent: AgentConfig = key(AgentConfig, "Turns and their bounds.")
    goals: GoalsConfig = key(GoalsConfig, "/goal.")
    compression: CompressionConfig = key(CompressionConfig, "Summaries of long conversations.")
    tool_loop_guardrails: GuardrailsConfig = key(GuardrailsConfig, "Loops of tool calls.")
    gateway: GatewayConfig = key(GatewayConfig, "Entrance, links and delivery.")
    streaming: StreamingConfig = key(StreamingConfig, "Drafts of an answer under way.")
    session_reset: SessionResetConfig = key(SessionResetConfig, "When sessions start afresh.")
    retention: RetentionConfig = key(RetentionConfig, "How long what is kept.")
    platforms: Mapping[Text, SerializeAsAny[PlatformConfig]] = key(
        dict, "Where people talk to the bot.", reload=Reload.LINK
    )
    mcp_servers: Mapping[Name, McpServerConfig] = key(dict, "MCP servers by name.", reload=Reload.LINK)
    tools: ToolsConfig = key(ToolsConfig, "Bounds of the built-in tools.")
    terminal: TerminalConfig = key(TerminalConfig, "The terminal tool.")
    approvals: ApprovalsConfig = key(ApprovalsConfig, "Questions before risky tool calls.")
    transcription: TranscriptionConfig = key(TranscriptionConfig, "Voice messages.")
    output: OutputConfig = key(OutputConfig, "Log lines.", reload=Reload.PROCESS)
