"""The machinery knows nothing of chat."""

from __future__ import annotations

import pytest

from tests.structure.source import Module, imported, modules

ALLOWED = ("hermes.runtime", "hermes.core.clock")
RUNTIME = [module for module in modules("hermes/runtime") if module.name.startswith("hermes/runtime/")]


def test_there_is_something_to_look_at() -> None:
    assert len(RUNTIME) >= 15


@pytest.mark.parametrize("module", RUNTIME, ids=lambda module: module.name)
def test_runtime_imports_only_itself_and_the_clock(module: Module) -> None:
    wrong = [
        name
        for _, name in imported(module)
        if name.startswith("hermes") and not any(name == ok or name.startswith(ok + ".") for ok in ALLOWED)
        if name not in {"hermes.core"}
    ]
    assert not wrong
