"""The machinery knows nothing of chat."""

from __future__ import annotations

import pytest

from tests.structure.source import Module, imported, modules

ALLOWED = ("hermes.runtime", "hermes.core.clock", "hermes.core.urgency")
WORDS_OF_PICTURES = ("hermes.core.attachments", "hermes.core.transcript", "hermes.policy.images")
"""Pillow is used by two petals, so it lies below them; it needs the words for a picture and for its limits."""
RUNTIME = [module for module in modules("hermes/runtime") if module.name.startswith("hermes/runtime/")]


def test_there_is_something_to_look_at() -> None:
    assert len(RUNTIME) >= 15


@pytest.mark.parametrize("module", RUNTIME, ids=lambda module: module.name)
def test_runtime_imports_only_itself_and_the_clock(module: Module) -> None:
    allowed = (*ALLOWED, *(WORDS_OF_PICTURES if module.name == "hermes/runtime/pictures.py" else ()))
    wrong = [
        name
        for _, name in imported(module)
        if name.startswith("hermes") and not any(name == ok or name.startswith(ok + ".") for ok in allowed)
        if name not in {"hermes.core"}
    ]
    assert not wrong
