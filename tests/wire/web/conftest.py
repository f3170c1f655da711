"""One gateway for the tests that do no harm to it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.wire.gateway.harness import Gateway
from tests.wire.web.page import rehearsing

LIMITS = {"platforms": {"web": {"max_message_bytes": 2000, "heartbeat": 1}}}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """Running; small limits, so that they can be reached."""
    running = rehearsing(tmp_path_factory.mktemp("page") / "home", LIMITS).start()
    yield running
    running.close()
