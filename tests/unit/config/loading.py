"""What the tests of the configuration share: the real adapters' models, and a file to load."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel

from hermes.config.errors import ConfigError, Problem
from hermes.config.load import Loaded, load_config
from hermes.platforms.discord.config import DiscordConfig
from hermes.platforms.slack.config import SlackConfig
from hermes.platforms.telegram.config import TelegramConfig
from hermes.platforms.web.config import WebConfig
from hermes.providers.anthropic.config import AnthropicConfig
from hermes.providers.openai.config import OpenaiConfig
from hermes.providers.rehearsal.config import RehearsalConfig

PLATFORMS: dict[str, type[BaseModel]] = {
    "telegram": TelegramConfig,
    "discord": DiscordConfig,
    "slack": SlackConfig,
    "web": WebConfig,
}
PROVIDERS: dict[str, type[BaseModel]] = {
    "openai": OpenaiConfig,
    "anthropic": AnthropicConfig,
    "rehearsal": RehearsalConfig,
}
TOKEN = "424242:AAFakeTokenForTestsOnly0000000000"


def load_file(path: Path | None, home: Path, environ: Mapping[str, str] | None = None) -> Loaded:
    return load_config(
        path, home=home, environ=environ or {}, platform_models=PLATFORMS, provider_models=PROVIDERS
    )


def load_text(text: str | bytes, home: Path, environ: Mapping[str, str] | None = None) -> Loaded:
    """Loads ``text`` as the home's config.yaml."""
    raw = text if isinstance(text, bytes) else text.encode()
    (home / "config.yaml").write_bytes(raw)
    return load_file(None, home, environ)


def problems_of(
    text: str | bytes, home: Path, environ: Mapping[str, str] | None = None
) -> tuple[Problem, ...]:
    """The problems of ``text``; none when it loads."""
    try:
        load_text(text, home, environ)
    except ConfigError as error:
        return error.problems
    return ()


@dataclass(frozen=True)
class Broken:
    """A file, and the one problem it must have: its line, its path, and parts of its sentence."""

    name: str
    text: str | bytes
    line: int
    path: str
    says: tuple[str, ...]


def lacking(case: Broken, home: Path) -> list[str]:
    """What is wrong with the answer to a broken file; nothing if it is refused as the case says."""
    problems = problems_of(case.text, home)
    if [problem.path for problem in problems] != [case.path]:
        return [f"problems at {[problem.path for problem in problems]}"]
    (problem,) = problems
    wrong = [f"no {part!r} in {problem.render()!r}" for part in case.says if part not in problem.render()]
    if (problem.file, problem.line) != (str(home / "config.yaml"), case.line):
        wrong.append(f"{problem.file}:{problem.line} instead of line {case.line}")
    if not problem.cure or "\n" in problem.cure:
        wrong.append("no cure in one line")
    return wrong
