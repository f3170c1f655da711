"""Keys over the wire: one refresh for all, the key that failed rests, single-use tokens survive races."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp.resolver import ThreadedResolver

from hermes.agent.credentials import CredentialPool, StaticKey, ident_of
from hermes.app.credentials import CommandKey, CredentialFile, OauthKey
from hermes.config.adapters import CommandCredential, OauthCredential
from hermes.core.errors import ProviderFailure
from hermes.policy.credentials import KeyHealth, KeyState, Strategy
from hermes.providers.network import Network
from hermes.runtime.clock import SystemClock
from hermes.runtime.offload import Offload
from hermes.runtime.supervisor import Supervisor
from hermes.simulators.faults import ApiError
from tests.wire.repairs.counter import counter, portal

pytestmark = pytest.mark.wire
both = pytest.mark.parametrize("dialect", ["openai", "anthropic"])
KEYS = ("sk-first-key-000", "sk-second-key-00", "sk-third-key-000")


@pytest.fixture
async def supervisor() -> AsyncIterator[Supervisor]:
    made = Supervisor("test", clock=SystemClock())
    yield made
    await made.aclose(1.0)


@pytest.fixture
async def offload() -> AsyncIterator[Offload]:
    made = Offload()
    yield made
    made.close()


def oauth_key(home: Path, url: str, offload: Offload) -> OauthKey:
    raw = {"token_url": url, "client_id": "hermes", "refresh_token": "refresh-token-0"}
    config = OauthCredential.model_validate(raw)
    file = CredentialFile(home, offload)
    return OauthKey("main", config, file, SystemClock(), Network(ThreadedResolver()))


@both
async def test_an_expired_token_and_fifty_turns_make_one_refresh(
    dialect: str, tmp_path: Path, supervisor: Supervisor, offload: Offload
) -> None:
    (tmp_path / "credentials.json").write_text(json.dumps({"page_token": "kept"}))
    seen: list[str] = []
    async with portal() as found:
        source = oauth_key(tmp_path, found.url, offload)
        pool = CredentialPool([source], SystemClock(), supervisor.spawn, on_secret=seen.append)
        first = await pool.take()
        async with counter(dialect, pool) as it:
            it.sim.api_key = "access-token-2"  # the first one has been revoked early
            answers = await asyncio.gather(*(it.answer(f"«{n}»") for n in range(50)))
            assert len(answers) == 50
            assert len(found.requests) == 2, "the first fetch, and one refresh"
            assert {key for key in it.used() if key != first.secret} == {"access-token-2"}
            assert it.used().count("access-token-2") == 50
    kept = json.loads((tmp_path / "credentials.json").read_text())
    assert kept["page_token"] == "kept"
    assert kept["oauth"][source.ident]["refresh_token"] == "refresh-token-2"
    assert (tmp_path / "credentials.json").stat().st_mode & 0o777 == 0o600
    assert seen == ["access-token-1", "access-token-2"]


@both
@pytest.mark.parametrize("status", [401, 402, 429])
async def test_of_three_keys_the_second_fails_and_rests_under_concurrency(
    dialect: str, status: int, supervisor: Supervisor
) -> None:
    kept: list[dict[str, KeyHealth]] = []

    async def keep(healths: object) -> None:
        kept.append(dict(healths))  # type: ignore[call-overload]

    pool = CredentialPool(
        [StaticKey(key) for key in KEYS], SystemClock(), supervisor.spawn, strategy=Strategy.ROUND_ROBIN, keep=keep
    )
    words = {401: "Invalid API key", 402: "Insufficient credits", 429: "Rate limit reached"}
    async with counter(dialect, pool) as it:
        bad = ApiError(status, words[status])
        it.sim.when(lambda request: it.sim.dialect.key(request.headers) == KEYS[1], bad, repeat=True)
        await asyncio.gather(*(it.answer(f"«{n}»") for n in range(30)))
        counts = {key: it.used().count(key) for key in KEYS}
        assert counts[KEYS[0]] + counts[KEYS[2]] == 30, "each turn was answered once"
        assert len(it.used()) == 30 + counts[KEYS[1]]
        assert counts[KEYS[1]] <= 10, "whoever had the bad key already, and nobody after"
        states = pool.states()
        assert states == {
            ident_of(KEYS[0]): KeyState.LIVE, ident_of(KEYS[1]): KeyState.RESTING, ident_of(KEYS[2]): KeyState.LIVE
        }  # fmt: skip
        await asyncio.gather(*(it.answer(f"«{n}»") for n in range(6)))
        assert it.used().count(KEYS[1]) == counts[KEYS[1]]
    assert kept
    again = CredentialPool(
        [StaticKey(key) for key in KEYS], SystemClock(), supervisor.spawn,
        kept={ident: {"state": one.state.value, "until": one.until} for ident, one in kept[-1].items()},
    )  # fmt: skip
    assert again.states() == states


async def test_a_refused_refresh_is_one_request_and_names_no_token(
    tmp_path: Path, supervisor: Supervisor, offload: Offload
) -> None:
    async with portal() as found:
        found.revoked = True
        pool = CredentialPool([oauth_key(tmp_path, found.url, offload)], SystemClock(), supervisor.spawn)
        ends = await asyncio.gather(*(pool.take() for _ in range(20)), return_exceptions=True)
        assert len(found.requests) == 1
        assert all(isinstance(end, ProviderFailure) for end in ends)
        assert not any("refresh-token" in repr(end.facts) for end in ends if isinstance(end, ProviderFailure))


RACER = """
import asyncio, sys
from pathlib import Path
from hermes.runtime.offload import Offload
from tests.wire.repairs.test_credentials import oauth_key

async def race():
    offload = Offload()
    key = oauth_key(Path(sys.argv[1]), sys.argv[2], offload)
    print((await key.fetch(None)).value)
    offload.close()

asyncio.run(race())
"""


async def test_two_processes_spend_a_single_use_token_once(tmp_path: Path) -> None:
    async with portal() as found:
        found.pause = 0.3
        racers = [
            await asyncio.create_subprocess_exec(
                sys.executable, "-c", RACER, str(tmp_path), found.url, stdout=asyncio.subprocess.PIPE,
                cwd=Path(__file__).parents[3],
            )
            for _ in range(3)
        ]
        said = [(await racer.communicate())[0].decode().strip() for racer in racers]
        assert said == ["access-token-1"] * 3
        assert len(found.requests) == 1
        assert not found.revoked


async def test_a_cancelled_waiter_does_not_lose_the_token(
    tmp_path: Path, supervisor: Supervisor, offload: Offload
) -> None:
    async with portal() as found:
        asked = asyncio.Event()
        found.on_token = lambda token: asked.set()
        pool = CredentialPool([oauth_key(tmp_path, found.url, offload)], SystemClock(), supervisor.spawn)
        waiter = supervisor.spawn(pool.take(), "waiter")
        await asked.wait()
        waiter.cancel()
        assert (await pool.take()).secret == "access-token-1"
        assert len(found.requests) == 1


@pytest.mark.parametrize(
    ("program", "words"),
    [("import time; time.sleep(60)", "took over"), ("raise SystemExit(3)", "exit code 3"), ("print()", "gave no key")],
)
async def test_a_command_that_gives_no_key_is_bounded_and_told(
    program: str, words: str, offload: Offload
) -> None:
    raw = {"command": [sys.executable, "-c", program], "timeout": 2}
    key = CommandKey("main", CommandCredential.model_validate(raw), SystemClock(), offload, {})
    with pytest.raises(ProviderFailure, match="main") as caught:
        await key.fetch(None)
    assert words in caught.value.facts.message
    assert len(offload.children) == 0


async def test_a_command_prints_the_key(offload: Offload) -> None:
    raw = {"command": [sys.executable, "-c", "print('sk-from-a-program')"], "timeout": 20}
    key = CommandKey("main", CommandCredential.model_validate(raw), SystemClock(), offload, {})
    assert (await key.fetch(None)).value == "sk-from-a-program"


