from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.wire.cli.home import Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A fresh home in which nothing runs."""
    return Home(tmp_path / "h")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A home whose gateway runs for all tests of the file."""
    home = Home(tmp_path_factory.mktemp("served") / "h")
    with home.gateway():
        yield home
