"""One holder a name on one machine."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from hermes.runtime.exclusive import ExclusiveNames

HOLDER = """
import sys
from pathlib import Path
from hermes.runtime.exclusive import ExclusiveNames
names = ExclusiveNames(Path(sys.argv[1]))
print(names.hold("token"), flush=True)
sys.stdin.read()
"""


def test_a_second_process_stands_by_and_takes_over_when_the_first_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "True\n"
        names = ExclusiveNames(tmp_path)
        assert not names.hold("token")
        assert names.hold("another token")
        first.kill()
        first.wait()
        assert names.hold("token")
        names.release()


def test_no_name_is_written_anywhere(tmp_path: Path) -> None:
    names = ExclusiveNames(tmp_path)
    assert names.hold("123:very-secret")
    assert not any("secret" in p.name or b"secret" in p.read_bytes() for p in tmp_path.iterdir())
    names.release()


def test_a_directory_that_cannot_be_used_stops_nobody(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert ExclusiveNames(tmp_path / "file" / "below").hold("token")
