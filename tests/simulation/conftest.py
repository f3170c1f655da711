"""One way to make worlds, and all of them closed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.simulation.world import World


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., World]]:
    """Makes worlds: the arguments are those of ``World`` without its folder."""
    worlds: list[World] = []

    def new(*args: object, **kwargs: object) -> World:
        worlds.append(World(tmp_path, *args, **kwargs))  # type: ignore[arg-type]
        return worlds[-1]

    yield new
    for world in worlds:
        world.close()
