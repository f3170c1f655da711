"""One platform's packets vanish, without RST: it comes back unaided, and the others never notice."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.wire.gateway.black_hole import PLATFORMS
from tests.wire.gateway.harness import ROOT

pytestmark = [pytest.mark.wire, pytest.mark.root, pytest.mark.long]
SPACE = ("unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c")
INSIDE = 'ip link set lo up && exec "$@"'


@pytest.mark.parametrize("cut", PLATFORMS)
def test_a_black_hole_is_noticed_and_survived_and_no_other_platform_is_disturbed(tmp_path: Path, cut: str) -> None:
    if shutil.which("iptables", path="/usr/sbin:/sbin:/usr/bin") is None:
        pytest.skip("needs iptables (apt-get install iptables)")
    command = [*SPACE, INSIDE, "sh", sys.executable, "-m", "tests.wire.gateway.black_hole", cut, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout)
    assert found["failed"] == [cut]
    assert all(count == 0 for name, count in found["repeats"].items() if name != "telegram")
