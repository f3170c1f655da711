"""A platform whose SDK is an extra of the package says so before anything starts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
CONFIG = {
    "slack": "platforms: {slack: {enabled: true, bot_token: xoxb-1, app_token: xapp-1}}",
    "discord": "platforms: {discord: {enabled: true, token: a-token-of-some-length}}",
}
CODE = """
import sys
sys.modules[{sdk!r}] = None
from hermes.__main__ import main
sys.argv = ["hermes", "check"]
main()
"""


@pytest.mark.parametrize(("name", "sdk"), [("slack", "slack_sdk"), ("discord", "discord")])
def test_an_sdk_that_is_not_installed_is_named_with_the_cure(name: str, sdk: str, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(CONFIG[name])
    (tmp_path / "config.yaml").chmod(0o600)
    done = subprocess.run(
        [sys.executable, "-c", CODE.format(sdk=sdk)], cwd=ROOT, env={"HERMES_HOME": str(tmp_path), "PATH": ""},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 78
    assert f"{sdk} is not installed: pip install 'hermes-gateway[{name}]'" in done.stdout + done.stderr
