"""The store's ports over both databases: the simulation's and the daemon's (R28)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from hermes.runtime.clock import SystemClock
from hermes.runtime.supervisor import Supervisor
from hermes.store.database import InlineDatabase, ThreadedDatabase
from tests.unit.store.making import Store


@pytest_asyncio.fixture(params=["inline", "threaded"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    """All ports over a fresh database."""
    if request.param == "inline":
        inline = InlineDatabase()
        yield Store.over(inline)
        inline.conn.close()
        return
    supervisor = Supervisor("test", clock=SystemClock())
    threaded = ThreadedDatabase(tmp_path / "state.db")
    await threaded.open()
    yield Store.over(threaded)
    await threaded.aclose()
    await supervisor.aclose(1.0)
