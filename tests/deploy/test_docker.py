"""The image under a real engine: healthy, an answer, a crash, a bad configuration, a clean stop."""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.deploy.engine import IMAGE, Engine
from tests.structure.source import ROOT
from tests.waiting import until

pytestmark = [pytest.mark.docker, pytest.mark.wire]

KILL_IT = """
import os, pathlib, signal
for place in pathlib.Path("/proc").glob("[0-9]*"):
    words = (place / "cmdline").read_bytes().split(b"\\0")
    if b"run" in words and int(place.name) not in (1, os.getpid()):
        os.kill(int(place.name), signal.SIGKILL)
"""


WITHOUT_NETWORK = f"""
services:
  hermes:
    image: {IMAGE}
    build: !reset null
    ports: !reset []
    network_mode: none
    healthcheck: {{interval: 1s, timeout: 5s}}
"""
"""Laid over compose.yaml: the engine of the tests has no bridge, and the image is built already."""


def flags_of_compose() -> list[str]:
    """What compose.yaml asks of the engine, as the client's flags."""
    service = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]["hermes"]
    flags = [f"--restart={service['restart']}", f"--stop-timeout={service['stop_grace_period'].rstrip('s')}"]
    flags += ["--init"] if service["init"] else []
    flags += ["--read-only"] if service["read_only"] else []
    flags += [f"--tmpfs={path}" for path in service["tmpfs"]]
    flags += [f"--cap-drop={name}" for name in service["cap_drop"]]
    return flags + [f"--security-opt={option}" for option in service["security_opt"]]


class Container:
    """One container of the built image, started as compose.yaml says, on no network."""

    def __init__(self, engine: Engine, *, volume: str, flags: list[str]) -> None:
        self.engine = engine
        self.name = f"hermes-{uuid.uuid4().hex[:8]}"
        engine.must("run", "--detach", "--name", self.name, "--network=none", f"--volume={volume}:/data",
                    "--health-interval=1s", "--health-timeout=5s", *flags, IMAGE)  # fmt: skip

    @property
    def state(self) -> dict[str, object]:
        found: dict[str, object] = self.engine.inspect("container", self.name)["State"]
        return found

    def logs(self) -> str:
        done = self.engine.docker("logs", self.name)
        return (done.stdout + done.stderr)[-1500:]

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return self.engine.docker("exec", self.name, *command)

    def wait_healthy(self) -> None:
        def healthy() -> bool:
            found = self.engine.inspect("container", self.name)
            health = found["State"].get("Health")
            assert found["RestartCount"] < 4, f"it ends again and again: {self.logs()}"
            return isinstance(health, dict) and health["Status"] == "healthy"

        until(healthy, within=60, why=f"the container {self.name} is healthy", every=0.2)

    def answer(self, question: str) -> str:
        done = self.run("hermes", "chat", question)
        assert done.returncode == 0, done.stdout + done.stderr + self.logs()
        return done.stdout.strip()

    def remove(self) -> None:
        self.engine.docker("rm", "--force", self.name)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    engine = Engine(tmp_path_factory.mktemp("docker"))
    try:
        engine.build()
        yield engine
    finally:
        engine.close()


@pytest.fixture
def volume(engine: Engine) -> Iterator[str]:
    name = engine.must("volume", "create")
    yield name
    engine.docker("volume", "rm", "--force", name)


@pytest.fixture
def container(engine: Engine, volume: str) -> Iterator[Container]:
    container = Container(engine, volume=volume, flags=flags_of_compose())
    try:
        yield container
    finally:
        container.remove()


def test_the_image_is_made_for_a_user_without_rights(engine: Engine) -> None:
    config = engine.inspect("image", IMAGE)["Config"]
    assert config["User"] == "10001:10001"
    assert config["Entrypoint"] == ["hermes"]
    assert config["Cmd"] == ["run"]
    assert config["Healthcheck"]["Test"] == ["CMD", "hermes", "health"]
    assert "HERMES_HOME=/data" in config["Env"]
    assert "/data" in config["Volumes"]


def test_it_becomes_healthy_answers_and_writes_to_its_volume_only(container: Container) -> None:
    container.wait_healthy()
    assert container.answer("Are you there?")
    assert container.run("test", "-s", "/data/state.db").returncode == 0
    assert container.run("touch", "/opt/hermes/x").returncode != 0
    assert container.run("touch", "/etc/x").returncode != 0
    assert container.run("id", "-u").stdout.strip() == "10001"


def test_after_a_kill_it_is_back_and_answers_again(container: Container) -> None:
    container.wait_healthy()
    before = container.state["StartedAt"]
    container.run("python", "-c", KILL_IT)
    until(
        lambda: (
            container.engine.inspect("container", container.name)["RestartCount"] == 1
            and container.state["StartedAt"] != before
        ),
        within=30,
        why="the engine starts it again",
    )
    container.wait_healthy()
    assert container.answer("And now?")


def test_a_stop_is_clean_and_a_new_container_has_the_old_home(
    engine: Engine, container: Container, volume: str
) -> None:
    container.wait_healthy()
    engine.must("stop", container.name)
    assert container.state["ExitCode"] == 0, container.logs()
    assert container.state["OOMKilled"] is False
    successor = Container(engine, volume=volume, flags=flags_of_compose())
    try:
        successor.wait_healthy()
        assert successor.answer("Same home?")
    finally:
        successor.remove()


def test_a_bad_configuration_ends_with_78_and_says_where(engine: Engine, volume: str) -> None:
    bad = "echo 'gateway: {drain_timeout: never}' > /data/config.yaml"
    engine.must(
        "run", "--rm", "--network=none", f"--volume={volume}:/data", "--entrypoint=sh", IMAGE, "-c", bad
    )
    container = Container(engine, volume=volume, flags=["--read-only", "--tmpfs=/tmp", "--restart=no"])
    try:
        assert engine.must("wait", container.name) == "78"
        assert "config.yaml:1" in container.logs()
    finally:
        container.remove()


def test_compose_brings_it_up_and_takes_it_down(engine: Engine, tmp_path: Path) -> None:
    if engine.docker("compose", "version").returncode != 0:
        pytest.skip("docker: needs the compose plugin")
    override = tmp_path / "override.yaml"
    override.write_text(WITHOUT_NETWORK)
    files = ("--project-name", "hermes-test", "-f", str(ROOT / "compose.yaml"), "-f", str(override))
    try:
        engine.must("compose", *files, "up", "--detach", "--no-build", "--wait", within=120)
        assert engine.must("compose", *files, "exec", "-T", "hermes", "hermes", "chat", "Up?")
    finally:
        down = engine.docker("compose", *files, "down", "--volumes", within=120)
    assert down.returncode == 0, down.stderr
