"""Death on order."""

from __future__ import annotations

import subprocess
import sys

import pytest

from hermes.runtime.checkpoints import Checkpoints


@pytest.mark.parametrize(("spec", "reaches"), [("here", 1), ("here:1", 1), ("here:3", 3)])
def test_the_process_is_killed_at_the_nth_reach(spec: str, reaches: int) -> None:
    code = (
        "from hermes.runtime.checkpoints import Checkpoints\n"
        f"points = Checkpoints({spec!r})\n"
        "while True:\n    points.reach('elsewhere'); print('x', end='', flush=True); points.reach('here')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, timeout=30)
    assert done.returncode == -9
    assert done.stdout == b"x" * reaches


@pytest.mark.parametrize("spec", [None, ""])
def test_without_a_spec_nothing_happens(spec: str | None) -> None:
    points = Checkpoints(spec)
    for _ in range(3):
        points.reach("here")
    assert points._name is None


@pytest.mark.parametrize("spec", [":1", "a:", "a:0", "a:-1", "a:x", "a:²"])
def test_a_malformed_spec_names_the_cure(spec: str) -> None:
    with pytest.raises(ValueError, match="give NAME or NAME:N"):
        Checkpoints(spec)
