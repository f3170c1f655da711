"""``credentials.json`` between its writers, and a machine that has no room to look a key up."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from hermes.app.credentials import CredentialFile, FileKey
from hermes.core.errors import ForeignHome, ProviderFailure
from hermes.core.failures import CallContext, Reason
from hermes.policy.classify import classify
from hermes.runtime.offload import Offload
from tests.wire.repairs.test_credentials import oauth_key, offload

__all__ = ["offload"]

pytestmark = pytest.mark.wire


async def test_the_page_token_and_a_refresh_written_together_are_both_kept(
    tmp_path: Path, offload: Offload
) -> None:
    made = iter(f"token-{n}-" + "x" * 40 for n in range(10))
    file = CredentialFile(tmp_path, offload)

    async def refreshed(n: int) -> None:
        async with file.locked():
            await file.change("oauth", f"id-{n}", {"access_token": f"access-{n}"})

    tokens = [file.page_token(lambda: next(made)) for _ in range(5)]
    found = await asyncio.gather(*tokens, *(refreshed(n) for n in range(5)))
    assert len(set(found[:5])) == 1, "one token is made"
    kept = json.loads((tmp_path / "credentials.json").read_text())
    assert kept["page_token"] == found[0]
    assert set(kept["oauth"]) == {f"id-{n}" for n in range(5)}
    assert (tmp_path / "credentials.json").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("text", ["no json", "[]", "\ud800"])
async def test_a_file_that_is_not_ours_is_left_alone(tmp_path: Path, offload: Offload, text: str) -> None:
    path = tmp_path / "credentials.json"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    before = path.read_bytes()
    with pytest.raises(ForeignHome, match="move it away"):
        await CredentialFile(tmp_path, offload).page_token(lambda: "x" * 40)
    assert path.read_bytes() == before


async def test_no_room_to_look_a_key_up_is_a_failure_that_passes(tmp_path: Path) -> None:
    closed = Offload()
    closed.close()
    (tmp_path / "a.key").write_text("sk-of-a-file\n")
    for key in (
        FileKey("main", str(tmp_path / "a.key"), closed),
        oauth_key(tmp_path, "http://127.0.0.1:1/token", closed),
    ):
        with pytest.raises(ProviderFailure) as caught:
            await key.fetch(None)
        verdict = classify(caught.value.facts, CallContext())
        assert (verdict.reason, verdict.retryable) == (Reason.TIMEOUT, True)
