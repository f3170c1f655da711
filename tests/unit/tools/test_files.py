"""Reading only, inside the roots only, and nothing in a file tree keeps a call for ever (R24, R38)."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio

from hermes.core.errors import ToolError
from hermes.core.ids import SessionId
from hermes.core.principals import PrincipalId
from hermes.runtime.offload import Offload
from hermes.tools.files import FileAccess, ReadFile, SearchFiles


@dataclass(frozen=True)
class Somebody:
    session_id: SessionId
    principal_id: PrincipalId


SOMEBODY = Somebody(SessionId("s"), PrincipalId("p"))


@dataclass
class Tree:
    root: Path
    home: Path
    access: FileAccess
    offload: Offload

    async def read(self, path: str, **more: object) -> str:
        return await ReadFile(self.access, self.offload).run({"path": path, **more}, SOMEBODY)

    async def search(self, timeout: float = 20.0, **arguments: object) -> str:  # noqa: ASYNC109
        return await SearchFiles(self.access, self.offload, timeout=timeout).run(arguments, SOMEBODY)


@pytest_asyncio.fixture
async def tree(tmp_path: Path) -> AsyncIterator[Tree]:
    """The gateway's home lies inside of the root, as where the owner lets the tools read all of theirs."""
    root = tmp_path / "root"
    home = root / ".hermes"
    home.mkdir(parents=True)
    (home / ".env").write_text("SECRET=1")
    (root / "notes.md").write_text("one\ntwo bees\nthree")
    (tmp_path / "outside.txt").write_text("not yours")
    (tmp_path / "root-twin").mkdir()
    (tmp_path / "root-twin" / "x").write_text("not yours either")
    offload = Offload()
    yield Tree(root, home, FileAccess((root,), (home,), max_read_bytes=1000, max_search_files=50), offload)
    offload.close()


async def test_a_file_is_read_whole_or_from_a_line_on(tree: Tree) -> None:
    assert await tree.read("notes.md") == "one\ntwo bees\nthree"
    assert await tree.read(str(tree.root / "notes.md"), first_line=2, lines=1) == "two bees"
    assert await tree.read("notes.md", first_line=99) == "(empty)"
    assert await tree.read("notes.md", first_line="x", lines=True, extra=[]) == "one\ntwo bees\nthree"


@pytest.mark.parametrize(
    "path",
    [
        "../outside.txt", "a/../../outside.txt", "/etc/passwd", "/proc/self/environ", "~root/x",
        "~nobody-of-that-name/x",
        ".hermes/.env", "./.hermes/../.hermes/.env", ".hermes", "../root-twin/x", "link-out", "link-home/.env", "loop",
        "a" * 5000, "/dev/zero", "/dev/stdin",
    ],
)  # fmt: skip
async def test_nothing_outside_the_roots_or_inside_the_home_is_read(tree: Tree, path: str) -> None:
    (tree.root / "link-out").symlink_to(tree.root.parent / "outside.txt")
    (tree.root / "link-home").symlink_to(tree.home)
    (tree.root / "loop").symlink_to("loop")
    with pytest.raises(ToolError):
        await tree.read(path)


@pytest.mark.parametrize("arguments", [{}, {"path": ""}, {"path": 7}, {"path": "a\0b"}, {"path": None}])
async def test_a_path_that_is_none_is_told_as_such(tree: Tree, arguments: dict[str, object]) -> None:
    with pytest.raises(ToolError, match="path"):
        await ReadFile(tree.access, tree.offload).run(arguments, SOMEBODY)


async def test_a_pipe_a_folder_and_a_binary_are_refused_at_once(tree: Tree) -> None:
    os.mkfifo(tree.root / "pipe")
    (tree.root / "binary").write_bytes(b"\0\1\2")
    refusals = {"pipe": "not a file", ".": "not a file|directory", "binary": "not a text", "none": "No such"}
    for name, said in refusals.items():
        with pytest.raises(ToolError, match=said):
            await tree.read(name)
    assert "bees" in await tree.search(pattern="be+s")
    assert "pipe" in await tree.search(glob="pi*")


async def test_a_long_file_is_cut_and_says_so(tree: Tree) -> None:
    (tree.root / "long.txt").write_text("x" * 5000)
    text = await tree.read("long.txt")
    assert text.startswith("x" * 1000 + "\n[cut after")
    assert len(text) < 1100


@pytest.mark.parametrize("pattern", ["bees", "b(e)+s", "two|none"])
async def test_a_line_is_found_with_its_place(tree: Tree, pattern: str) -> None:
    assert await tree.search(pattern=pattern, glob="*.md") == f"{tree.root}/notes.md:2: two bees"
    assert await tree.search(pattern=pattern, glob="*.py") == "Nothing matches."


@pytest.mark.parametrize("pattern", ["SECRET", "SECR.*", "not yours", "n.* yours"])
async def test_a_search_never_leaves_the_roots_nor_enters_the_home(tree: Tree, pattern: str) -> None:
    (tree.root / "link-out").symlink_to(tree.root.parent / "outside.txt")
    (tree.root / "link-env").symlink_to(tree.home / ".env")
    (tree.root / "link-up").symlink_to(tree.root.parent)
    assert await tree.search(pattern=pattern) == "Nothing matches."
    assert ".env" not in await tree.search(glob="*env*")


@pytest.mark.parametrize("pattern", ["(", "[a-", "*", "(?P<x>a)(?P<x>b)", "a{99999999999}"])
async def test_what_is_no_expression_is_told_to_the_model(tree: Tree, pattern: str) -> None:
    with pytest.raises(ToolError, match="not a regular expression"):
        await tree.search(pattern=pattern)


async def test_an_expression_that_never_ends_is_killed_and_the_process_stays_free(tree: Tree) -> None:
    (tree.root / "trap.txt").write_text("a" * 60 + "!")
    began = time.monotonic()
    with pytest.raises(ToolError, match="longer than 1 s"):
        await tree.search(timeout=1.0, pattern="(a+)+$", glob="trap.txt")
    assert time.monotonic() - began < 10
    assert tree.offload.orphans == {"dns": 0, "files": 0, "cpu": 0}
    assert len(tree.offload.children) == 0
    assert "bees" in await tree.search(pattern="be+s")


async def test_matches_and_files_are_bounded(tree: Tree) -> None:
    for number in range(60):
        (tree.root / f"{number:03}.txt").write_text("hit\n" * 10)
    for pattern in ("hit", "hi+t"):
        lines = (await tree.search(pattern=pattern)).splitlines()
        assert len(lines) <= 101
        assert lines[-1] == "[stopped: too many]"


@pytest.mark.parametrize("name", ["new\nline.txt", "umlaut-ü.txt", "bytes-\udcff.txt", "-rf.txt", "{}.txt"])
async def test_names_of_any_kind_do_not_stop_a_search(tree: Tree, name: str) -> None:
    (tree.root / name).write_text("hit")
    for pattern in ("hit", "hi+t"):
        assert "hit" in await tree.search(pattern=pattern)
