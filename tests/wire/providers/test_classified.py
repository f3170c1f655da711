"""The labelled errors of the corpus, sent over the wire: the real SDKs lose nothing that decides."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hermes.core.errors import ProviderFailure
from hermes.core.failures import CallContext
from hermes.core.ports import Provider
from hermes.policy.classify import classify, facts_from_record
from tests.wire.providers.dialects import DIALECTS, Dialect, ask
from tests.wire.providers.upstream import Upstream, whole

pytestmark = [pytest.mark.wire, pytest.mark.parametrize("dialect", DIALECTS, ids=lambda d: d.name)]

FRAMING = ("content-length", "content-type", "content-encoding", "transfer-encoding", "connection")
CORPUS = Path(__file__).parents[2] / "data" / "errors" / "provider.jsonl"


def records(dialect: Dialect) -> list[dict[str, Any]]:
    """Errors with a status and a body, of providers that speak this dialect."""
    found = [json.loads(line) for line in CORPUS.read_text().splitlines()]
    return [
        record
        for record in found
        if isinstance(record["status"], int)
        and record["status"] >= 400
        and record["body"]
        and ("anthropic" in record["provider"]) == (dialect.name == "anthropic")
    ]


def sent(record: dict[str, Any]) -> bytes:
    body = record["body"] if isinstance(record["body"], str) else json.dumps(record["body"])
    headers = {name: str(value) for name, value in record["headers"].items() if name not in FRAMING}
    return whole(record["status"], body, headers=headers)


async def reason(provider: Provider) -> str:
    with pytest.raises(ProviderFailure) as caught:
        await provider.complete(ask(), lambda text: None)
    return classify(caught.value.facts, CallContext()).reason


async def test_an_error_means_the_same_after_the_wire_as_in_the_corpus(dialect: Dialect) -> None:
    corpus = records(dialect)
    assert len(corpus) > 20
    wrong = []
    async with Upstream(*([sent(record)] for record in corpus)) as upstream:
        provider = dialect.provider(upstream.url)
        for record in corpus:
            found = await reason(provider)
            expected = classify(*facts_from_record(record)).reason
            if found != expected:
                wrong.append((record["id"], found, expected))
        await provider.aclose()
    assert not wrong
