"""What the owner wrote for the agent, read from the home at start and at each reload."""

from __future__ import annotations

from pathlib import Path

from hermes.agent.prompt import Instructions
from hermes.runtime.logs import get_logger

log = get_logger(__name__)


def instructions(home: Path) -> Instructions:
    """SOUL.md and AGENTS.md of the home, as they are now; what cannot be read is left out and logged."""
    texts: dict[str, str] = {}
    for name in ("SOUL.md", "AGENTS.md"):
        try:
            texts[name] = (home / name).read_text("utf-8")
        except FileNotFoundError:
            continue
        except (OSError, UnicodeDecodeError) as error:
            log.error("instructions_not_read", file=name, error=str(error))
    return Instructions(texts.get("SOUL.md"), texts.get("AGENTS.md"))
