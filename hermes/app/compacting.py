"""Compaction wired: who summarises, within which bounds, and /compress (R36)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hermes.agent.account import Money
from hermes.agent.compactor import CompactionSettings, Compactor
from hermes.agent.pipeline import Pipeline
from hermes.agent.summariser import Summariser
from hermes.agent.targets import Target
from hermes.agent.turn import TurnLoop
from hermes.app.backends import backend_of
from hermes.app.parts import Gateway, Machine
from hermes.app.settings import target_of
from hermes.config.model import Config
from hermes.core.ports import Provider
from hermes.core.principals import PrincipalId
from hermes.core.snapshots import Snapshots
from hermes.gateway.commands import CommandCall, CommandSpec
from hermes.gateway.compress import compress_command
from hermes.policy.cures import Repair
from hermes.policy.recovery import RecoveryPolicy, RecoveryTarget


def make_compactor(
    config: Config, snapshots: Snapshots, machine: Machine, pipeline: Pipeline, money: Money,
    providers: Mapping[str, Provider],
) -> Compactor:
    """The summaries' calls share the turns' governor, keys and learned facts, and are no turn's retries."""
    targets, policy = summarising(config, pipeline, providers, machine.environment.variables)
    summariser = Summariser(
        pipeline.beside(targets, policy), machine.clock, machine.redact,
        max_calls=config.compression.max_chunk_calls, timeout=config.compression.timeout,
    )  # fmt: skip
    return Compactor(snapshots, pipeline, summariser, money, machine.clock, compaction_settings(config))


def recompact(gateway: Gateway, config: Config, environ: Mapping[str, str]) -> None:
    """After a reload; the turns' pipeline has its new targets already."""
    compactor, pipeline = gateway.runner.compactor, gateway.runner.pipeline
    summariser = compactor.summariser
    pipeline.trim_share = config.compression.threshold
    compactor.settings = compaction_settings(config)
    summariser.max_calls, summariser.timeout = config.compression.max_chunk_calls, config.compression.timeout
    targets, policy = summarising(config, pipeline, gateway.providers, environ)
    summariser.pipeline.targets, summariser.pipeline.policy = targets, policy


def compaction_settings(config: Config) -> CompactionSettings:
    """``compression``."""
    c = config.compression
    return CompactionSettings(c.enabled, c.threshold, c.target_ratio, c.protect_last_n)


def summarising(
    config: Config, pipeline: Pipeline, providers: Mapping[str, Provider], environ: Mapping[str, str]
) -> tuple[tuple[Target, ...], RecoveryPolicy]:
    """Who is asked for summaries, and within which bounds. A failed call is a failed summary: the trim is there.

    By default those who answer; else the model that is named, and nobody in its place.
    """
    chosen, targets = config.compression, pipeline.targets
    known = pipeline.policy.targets
    if (chosen.provider, chosen.model) != (config.model.provider, config.model.model):
        one = target_of(config, providers, chosen.provider, chosen.model)
        backend = backend_of(chosen.provider, config.providers[chosen.provider], chosen.model, environ)
        targets, known = (one,), (RecoveryTarget(one.name, one.context_window, one.max_output, backend),)
    policy = replace(
        pipeline.policy, targets=known, retries=0, continuations=0, can_park=False, prefer_bigger_window=False,
        available=pipeline.policy.available - {Repair.COMPACT, Repair.REDUCE_MAX_TOKENS, Repair.RAISE_MAX_TOKENS},
    )  # fmt: skip
    return targets, policy


def compressing(runner: TurnLoop, machine: Machine) -> CommandSpec:
    """/compress."""

    async def compress(call: CommandCall, principal: PrincipalId, deadline: float) -> str:
        frame = runner.frame(call.event.address.platform, call.role)
        return await runner.compactor.compress(call.session, principal, frame, call.argument, deadline)

    return compress_command(compress, machine.clock, lambda: runner.turn_deadline)
