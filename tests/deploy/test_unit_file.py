"""The shipped unit, judged without starting it."""

from __future__ import annotations

import configparser
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.structure.source import ROOT

UNIT = ROOT / "deploy/systemd/hermes.service"
EXPOSURE = 15
"""The most that `systemd-analyze security` may say, in tenths (1.5)."""

needs_analyze = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None,
    reason="systemd: needs systemd-analyze (Debian: apt-get install systemd)",
)


def _seconds(text: str) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|min)?", text)
    assert match, text
    return float(match[1]) * {"ms": 0.001, "s": 1, "min": 60, None: 1}[match[2]]


@pytest.fixture
def rendered(tmp_path: Path) -> Path:
    """The unit with a program that exists here: verify insists on one."""
    path = tmp_path / "hermes.service"
    path.write_text(UNIT.read_text().replace("/opt/hermes/.venv/bin/hermes", "/bin/true"))
    return path


def _analyze(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["systemd-analyze", *words], capture_output=True, text=True, check=False)


@needs_analyze
def test_systemd_understands_every_line_of_the_unit(rendered: Path) -> None:
    done = _analyze("verify", "--man=no", "--recursive-errors=yes", str(rendered))
    assert (done.returncode, done.stderr) == (0, "")


@needs_analyze
def test_the_check_itself_would_notice_a_wrong_line(rendered: Path) -> None:
    rendered.write_text(rendered.read_text().replace("WatchdogSec=", "WatchdogSecs="))
    assert _analyze("verify", "--man=no", "--recursive-errors=yes", str(rendered)).returncode != 0


@needs_analyze
def test_the_unit_is_hardened(rendered: Path) -> None:
    done = _analyze("security", "--offline=yes", f"--threshold={EXPOSURE}", "--no-pager", str(rendered))
    assert done.returncode == 0, done.stdout[-300:]


def _service() -> configparser.SectionProxy:
    parser = configparser.RawConfigParser(strict=False)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read_string(UNIT.read_text())
    return parser["Service"]


def test_the_exit_codes_of_the_contract_are_obeyed() -> None:
    service = _service()
    assert service["Type"] == "notify"
    assert service["Restart"] == "on-failure"
    assert service["RestartPreventExitStatus"] == "78"
    assert service["RestartForceExitStatus"] == "75"


def test_systemd_waits_longer_for_the_end_than_the_drain_may_take() -> None:
    drain = 30  # gateway.drain_timeout's default
    assert _seconds(_service()["TimeoutStopSec"]) >= drain + 15


def test_the_watchdog_is_on() -> None:
    assert 10 <= _seconds(_service()["WatchdogSec"]) <= 120
