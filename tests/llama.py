"""A real llama-server with a real small chat model, for the `llm` lane (requirements-llm.lock)."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.capabilities import llama_server
from tests.waiting import until

__all__ = ["Llama", "serving"]

MODEL = "smol"


@dataclass(frozen=True, slots=True)
class Llama:
    """A server that answers. It speaks the OpenAI and the Anthropic wire protocols."""

    base_url: str
    """With /v1: the openai client's; the anthropic client wants it without."""
    context_window: int
    """Tokens that prompt and answer may have together."""
    pid: int
    """Its process, for tests that stop or kill it."""


@contextlib.contextmanager
def serving(
    folder: Path,
    *,
    context_window: int = 1024,
    other_model: Path | None = None,
    port: int | None = None,
    arguments: Sequence[str] = (),
    ready: bool = True,
) -> Iterator[Llama]:
    """Starts the server (2 to 3 s), yields when it is healthy, ends it. Its log is `folder`/llama.log.

    `other_model` replaces the small chat model; see `tests.tiny_model`. `arguments` are the server's own. Without
    `ready` it yields at once, while the model is still being loaded.
    Give it a fixture of module or session scope. Raises AssertionError with the log's end if it dies, as it
    does on a processor that lacks the instructions it was compiled for.
    """
    found = llama_server()
    assert found is not None, "mark the test with pytest.mark.llm"
    binary, model = found
    model = other_model or model
    port = port or _free_port()
    log = folder / "llama.log"
    command = ["setpriv", "--pdeathsig", "KILL", str(binary), "-m", str(model), "--alias", MODEL]
    command += ["--host", "127.0.0.1", "--port", str(port)]
    command += ["-c", str(context_window), "-np", "1", "--offline", "--no-repack", "--no-ui", *arguments]
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            env={**os.environ, "LD_LIBRARY_PATH": str(binary.parent)},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )

    def healthy() -> bool:
        assert process.poll() is None, f"llama-server ended: {log.read_text(errors='replace')[-2000:]}"
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    try:
        if ready:
            until(healthy, within=90, why="llama-server has loaded its model", every=0.1)
        yield Llama(f"http://127.0.0.1:{port}/v1", context_window, process.pid)
    finally:
        process.kill()
        process.wait(timeout=20)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
