"""What may stand where config.yaml belongs, each with its own sentence."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.config.errors import ConfigError
from tests.unit.config.loading import load_file

NOBODY = 65534


def refusal(path: Path | None, home: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        load_file(path, home)
    (problem,) = caught.value.problems
    return problem.render()


def test_an_absent_default_file_means_defaults(tmp_path: Path) -> None:
    loaded = load_file(None, tmp_path)
    assert loaded.config.model.provider == "rehearsal"
    assert loaded.sources == ("environment",)


def test_an_absent_home_means_defaults(tmp_path: Path) -> None:
    assert load_file(None, tmp_path / "none").config.gateway.bind == "127.0.0.1:8642"


def test_an_absent_config_file_that_was_named_is_refused(tmp_path: Path) -> None:
    assert "other.yaml: there is no such file" in refusal(tmp_path / "other.yaml", tmp_path)


def test_a_link_to_nothing_is_refused_even_at_the_default_place(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").symlink_to(tmp_path / "gone")
    assert "a link to a file that does not exist" in refusal(None, tmp_path)


def test_a_directory_is_refused(tmp_path: Path) -> None:
    assert "it is a directory" in refusal(tmp_path, tmp_path)
    (tmp_path / "config.yaml").mkdir()
    assert "it is a directory" in refusal(None, tmp_path)


def test_a_pipe_is_refused_without_waiting_for_a_writer(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "config.yaml")
    assert "it is no regular file" in refusal(None, tmp_path)


def test_a_name_with_a_nul_is_refused(tmp_path: Path) -> None:
    assert "it cannot be read" in refusal(Path("a\0b"), tmp_path)


def test_a_file_below_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    assert "it cannot be read: Not a directory" in refusal(tmp_path / "file" / "config.yaml", tmp_path)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that any user may enter."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def not_root() -> Iterator[None]:
    """For root no file is unreadable; the test goes on as nobody."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    yield
    os.seteuid(0)


def test_a_file_of_mode_0000_is_refused(open_folder: Path, request: pytest.FixtureRequest) -> None:
    file = open_folder / "config.yaml"
    file.write_text("agent: {}\n")
    file.chmod(0)
    request.getfixturevalue("not_root")
    assert "it may not be read by this user" in refusal(None, open_folder)


def test_a_byte_order_mark_and_dos_line_ends_are_no_harm(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_bytes(b"\xef\xbb\xbfagent:\r\n  max_turns: 7\r\n")
    assert load_file(None, tmp_path).config.agent.max_turns == 7


def test_json_is_yaml(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text('{"agent": {"max_turns": 7}, "gateway": {"bind": "[::1]:8642"}}')
    config = load_file(None, tmp_path).config
    assert (config.agent.max_turns, config.gateway.bind) == (7, "[::1]:8642")
