"""Dockerfile, compose.yaml and .dockerignore, judged without an engine."""

from __future__ import annotations

import re

import yaml

from tests.structure.source import ROOT

DOCKERFILE = (ROOT / "Dockerfile").read_text()
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text())
SERVICE = COMPOSE["services"]["hermes"]


def test_the_dockerfile_builds_on_old_and_closed_builders() -> None:
    assert "syntax=" not in DOCKERFILE  # would pull a frontend image
    assert "<<" not in DOCKERFILE  # needs that frontend
    assert "--mount" not in DOCKERFILE  # unknown to the classic builder


def test_the_image_runs_without_root_and_checks_every_package_by_hash() -> None:
    assert re.search(r"^USER 10001:10001$", DOCKERFILE, re.MULTILINE)
    installs = re.findall(r"pip install[^\\\n]*", DOCKERFILE)
    assert len(installs) == 2
    assert all("--require-hashes" in line or "--no-deps ." in line for line in installs)


def test_the_page_is_published_on_this_machine_only() -> None:
    assert SERVICE["ports"] == ["127.0.0.1:8642:8642"]


def test_the_container_may_do_little() -> None:
    assert SERVICE["read_only"] is True
    assert SERVICE["cap_drop"] == ["ALL"]
    assert SERVICE["security_opt"] == ["no-new-privileges:true"]
    assert "privileged" not in SERVICE


def test_the_engine_waits_longer_for_the_end_than_the_drain_may_take() -> None:
    drain = 30  # gateway.drain_timeout's default
    assert int(SERVICE["stop_grace_period"].removesuffix("s")) >= drain + 15


def test_only_what_the_image_is_made_of_is_sent_to_the_builder() -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    assert rules[0] == "*"
    copied = {
        name
        for line in re.findall(r"^COPY (?!--from)(.*) \S+$", DOCKERFILE, re.MULTILINE)
        for name in line.split()
    }
    assert copied == {rule[1:] for rule in rules if rule.startswith("!")}
