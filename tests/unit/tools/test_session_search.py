"""What was said before comes back with its time and speaker, and only to whom it belongs."""

from __future__ import annotations

from dataclasses import dataclass
from zoneinfo import ZoneInfo

import pytest

from hermes.core.errors import ToolError
from hermes.core.ids import SessionId
from hermes.core.principals import PrincipalId
from hermes.store.database import InlineDatabase
from hermes.tools.session_search import SessionSearch
from tests.unit.store.making import Store


@dataclass(frozen=True)
class Person:
    principal_id: PrincipalId
    session_id: SessionId


async def test_both_sides_of_a_conversation_are_found_with_their_time() -> None:
    db = InlineDatabase()
    store = Store.over(db)
    await store.answer(1, "my bees swarm", reply="bees do that in May")
    await store.answer(2, "no bees here", chat="8")
    [(mine,)] = await store.rows("SELECT principal_id FROM sessions s JOIN session_keys k ON k.session_id=s.id "
                                 "WHERE k.key='telegram:7'")  # fmt: skip
    tool = SessionSearch(store.sessions, ZoneInfo("Europe/Berlin"))
    found = await tool.run({"query": "bees"}, Person(PrincipalId(str(mine)), SessionId("s")))
    assert found.splitlines() == [
        "[2027-01-15 09:00] you: bees do that in May",
        "[2027-01-15 09:00] the person: my bees swarm",
    ]
    assert await tool.run({"query": "wasps"}, Person(PrincipalId(str(mine)), SessionId("s"))) == "Nothing was found."
    db.conn.close()


@pytest.mark.parametrize("arguments", [{}, {"query": ""}, {"query": "  "}, {"query": 5}])
async def test_a_missing_query_is_told_to_the_model(arguments: dict[str, object]) -> None:
    db = InlineDatabase()
    with pytest.raises(ToolError, match="query"):
        await SessionSearch(Store.over(db).sessions).run(arguments, Person(PrincipalId("p"), SessionId("s")))
    db.conn.close()
