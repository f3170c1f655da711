"""The bound that `hermes explain policy` prints holds for the real pipeline, pools of keys and all."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hermes.agent.credentials import CredentialPool, Secret, StaticKey
from hermes.agent.pipeline import Pipeline
from hermes.agent.repairs import LearnedBook, Repairs
from hermes.agent.targets import Ask, Target, UpstreamBook
from hermes.app import settings as parts
from hermes.app.catalogue import PLATFORM_MODELS, PROVIDER_MODELS
from hermes.config.load import load_config
from hermes.config.model import Config
from hermes.core.errors import ProviderFailure
from hermes.core.failures import FailureFacts, FaultKind, Phase
from hermes.core.transcript import AssistantItem, ModelReply, ModelRequest, UserItem
from hermes.policy.recovery import bound
from hermes.runtime.supervisor import Supervisor
from hermes.runtime.virtual import VirtualClock, VirtualLoop
from tests.simulation.test_streams import Danger

pytestmark = pytest.mark.simulation

STATUSES = [
    (400, "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens"),
    (400, "max_tokens is too large: 8000. This model supports at most 4096 completion tokens."),
    (400, "Unable to generate parser for this template: failed to parse grammar"),
    (400, "messages.1.content.0: Invalid `signature` in `thinking` block"),
    (400, "Unknown parameter: 'foo'."), (400, "Error"), (401, "Incorrect API key provided"),
    (402, "Insufficient credits"), (403, "OAuth authentication is currently not allowed for this organization."),
    (404, "The model `m` does not exist"), (413, "Request entity too large"), (429, "Rate limit reached"),
    (429, "Extra usage is required for long context requests."), (500, "The server had an error"),
    (503, "Service unavailable"), (529, "Overloaded"),
]  # fmt: skip
KINDS = [
    FaultKind.CUT, FaultKind.REFUSED, FaultKind.POOL_TIMEOUT, FaultKind.STALLED, FaultKind.EMPTY_ANSWER,
    FaultKind.TRUNCATED_TOOL_CALL, FaultKind.BAD_JSON, FaultKind.UNMAPPED, FaultKind.CERTIFICATE,
]  # fmt: skip
FAULTS = st.one_of(
    st.builds(
        lambda one, after: FailureFacts(
            FaultKind.HTTP_STATUS, Phase.RESPONSE, "p", "m", one[0], message=one[1],
            headers={} if after is None else {"retry-after": str(after)},
        ),
        st.sampled_from(STATUSES), st.none() | st.integers(0, 300),
    ),
    st.builds(lambda kind: FailureFacts(kind, Phase.STREAM, "p", "m"), st.sampled_from(KINDS)),
)  # fmt: skip


class Failing:
    """Fails each call with the next fault; counts which call used which key."""

    def __init__(self, name: str, faults: Callable[[], FailureFacts]) -> None:
        self.name = name
        self.faults = faults
        self.calls = 0
        self.keys: Counter[str | None] = Counter()

    async def complete(self, request: ModelRequest, on_text: Callable[[str], None]) -> ModelReply:
        self.calls += 1
        self.keys[request.key] += 1
        await asyncio.sleep(0.1)
        raise ProviderFailure(self.faults())

    async def rebuild(self) -> None:
        """Nothing to rebuild."""

    async def aclose(self) -> None:
        """Nothing to close."""


class Fetched:
    """A key that can be fetched anew, and is another then."""

    ident, refreshable = "fetched", True

    def __init__(self) -> None:
        self.fetches = 0

    async def fetch(self, stale: str | None) -> Secret:
        self.fetches += 1
        return Secret(f"fetched-{self.fetches}")


class Quiet:
    """Looks away."""

    def on_text(self, text: str) -> None:
        """Nothing is shown."""

    def on_restart(self) -> None:
        """Nothing was shown."""

    def on_notice(self, kind: str, text: str) -> None:
        """Nobody reads it."""

    def on_tool(self, name: str, phase: str) -> None:
        """No tool runs."""

    async def settle(self) -> None:
        """There is no draft."""


def configured(folder: Path, keys: tuple[int, int], retries: int, fetched: bool) -> Config:
    """Two providers with so many keys; with ``fetched`` the second one's is fetched instead."""
    pools: list[dict[str, object]] = [
        {
            "kind": "openai",
            "base_url": f"http://{name}.invalid/v1",
            "api_keys": [f"sk-{name}-{n}" for n in range(count)],
        }
        for name, count in zip(("one", "two"), keys, strict=True)
    ]
    if fetched:
        pools[1] = {**pools[1], "api_keys": [], "credential": {"kind": "file", "path": "a.key"}}
    raw = {
        "model": {"provider": "one", "model": "m"},
        "providers": {"one": pools[0], "two": pools[1]},
        "fallback_providers": [{"provider": "two", "model": "m"}],
        "agent": {"api_max_retries": retries},
    }
    (folder / "a.key").write_text("sk-of-a-file\n")
    path = folder / "config.yaml"
    path.write_text(json.dumps(raw))
    return load_config(
        path, home=folder, environ={}, platform_models=PLATFORM_MODELS, provider_models=PROVIDER_MODELS
    ).config


async def one_call(config: Config, faults: Callable[[], FailureFacts], fetched: Fetched | None) -> list[Failing]:
    """The real pipeline on providers that only fail."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    clock = VirtualClock(loop)
    supervisor = Supervisor("sim", clock=clock)
    providers = [Failing("one", faults), Failing("two", faults)]
    pools = {}
    for provider in providers:
        keys = config.providers[provider.name].api_keys  # type: ignore[attr-defined]  # both are keyed
        sources = [StaticKey(key.get_secret_value()) for key in keys]
        pools[provider.name] = CredentialPool(sources or [fetched or Fetched()], clock, supervisor.spawn)
    targets = [Target(provider, "m", max_output=4000) for provider in providers]
    pipeline = Pipeline(
        targets, parts.recovery_policy(config, {}), clock, lambda: 0.5, upstreams=UpstreamBook(),
        repairs=Repairs(LearnedBook(clock), pools),
    )  # fmt: skip
    thought = AssistantItem("yes", provider="one", model="m", opaque=({"origin": "anthropic"},))
    ask = Ask("Be brief.", (UserItem("a " * 3000), thought, UserItem("b")), (Danger.spec,))
    await pipeline.call(ask, Quiet(), clock.monotonic() + 1e6)
    await supervisor.aclose(1.0)
    return providers


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.tuples(st.integers(1, 5), st.integers(1, 5)), st.integers(0, 3), st.booleans(),
    st.lists(FAULTS, min_size=1, max_size=40),
)  # fmt: skip
def test_no_sequence_of_failures_costs_more_calls_than_are_printed(
    tmp_path: Path, keys: tuple[int, int], retries: int, fetched: bool, faults: list[FailureFacts]
) -> None:
    config = configured(tmp_path, keys, retries, fetched)
    source, used = Fetched(), iter(range(10_000))
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(1_800_000_000.0)) as runner:
        providers = runner.run(one_call(config, lambda: faults[next(used) % len(faults)], source))
    assert sum(one.calls for one in providers) <= bound(parts.recovery_policy(config, {}))
    assert source.fetches <= 2, "a key is fetched anew once a call"


@pytest.mark.parametrize("keys", [1, 2, 5])
@pytest.mark.parametrize("status", [401, 402, 429])
def test_each_key_of_a_pool_is_tried_and_none_twice_without_a_retry(
    tmp_path: Path, keys: int, status: int
) -> None:
    """A 429 that states no wait: each key has rested by the time the last one failed."""
    config = configured(tmp_path, (keys, 1), 0, False)
    facts = FailureFacts(
        FaultKind.HTTP_STATUS, Phase.RESPONSE, "p", "m", status,
        headers={"retry-after": "0"} if status == 429 else {},
        message={401: "Incorrect API key provided", 402: "Insufficient credits", 429: "Rate limit reached"}[status],
    )  # fmt: skip
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(1_800_000_000.0)) as runner:
        first, second = runner.run(one_call(config, lambda: facts, None))
    assert list(first.keys.values()) == [1] * keys
    assert second.calls == 1
