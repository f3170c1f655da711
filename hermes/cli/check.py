"""``hermes check``: the very load that ``hermes run`` makes, and nothing else."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path

from hermes.app.catalogue import NotBuilt
from hermes.app.loading import load
from hermes.app.secrets import NoCredential
from hermes.cli.codes import OK, REFUSED
from hermes.cli.invocation import Invocation
from hermes.config.environment import Environment
from hermes.config.errors import ConfigError, Problem
from hermes.config.load import Loaded


def check(config: Path | None, invocation: Invocation) -> int:
    """Prints ``ok: …`` or all problems; locks and ports are not looked at."""
    try:
        loaded = load(Environment.read(), config)
    except ConfigError as error:
        return _refused(str(error), error.problems, invocation)
    except (NotBuilt, NoCredential) as error:
        return _refused(str(error), (Problem("", 0, "", str(error)),), invocation)
    model, platforms = _model(loaded), _platforms(loaded)
    if invocation.json:
        found = {"ok": True, "model": model, "platforms": platforms, "sources": list(loaded.sources),
                 "notices": list(loaded.notices), "problems": []}  # fmt: skip
        sys.stdout.write(json.dumps(found) + "\n")
        return OK
    sources = ", ".join(loaded.sources) or "defaults"
    sys.stdout.write(f"ok: model {model}; platforms {', '.join(platforms) or 'none'}; from {sources}\n")
    for notice in loaded.notices:
        sys.stdout.write(f"note: {notice}\n")
    return OK


def _model(loaded: Loaded) -> str:
    return f"{loaded.config.model.provider}/{loaded.config.model.model}"


def _platforms(loaded: Loaded) -> list[str]:
    return [name for name, platform in loaded.config.platforms.items() if platform.enabled]


def _refused(text: str, problems: tuple[Problem, ...], invocation: Invocation) -> int:
    if invocation.json:
        found = {"ok": False, "problems": [dataclasses.asdict(problem) for problem in problems]}
        sys.stdout.write(json.dumps(found) + "\n")
    else:
        sys.stderr.write(f"{text}\n")
    return REFUSED
