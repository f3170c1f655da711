"""The rehearsal's words. Pure: what it says follows from the transcript alone."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hermes.core.transcript import AssistantItem, Item, ToolResultItem, UserItem, without_lone_surrogates
from hermes.providers.rehearsal.scenarios import FAULTS, PERFORMANCES

ECHO_LIMIT = 400
"""Characters of a person's words or a tool's result that are said back."""

_ORDER = re.compile(r"(?:^|\s)/rehearse(?:[ \t]+(\S+))?", re.IGNORECASE)

HOW_TO = """To get a real one, do one of these and restart:
- set `OPENAI_API_KEY`, `ANTHROPIC_API_KEY` or `OPENROUTER_API_KEY`
- for a local server: set `OPENAI_BASE_URL=http://127.0.0.1:8080/v1` and `HERMES_MODEL=NAME`
- or name it in `config.yaml` under `model:` and `providers:`"""

MARKDOWN = """# A heading

Some **bold**, some *italic*, some ~~struck~~ and some `inline code`, and [a link](https://example.org/).

- a list
  - with a level below
- and 1 < 2 && 3 > 2 _unescaped_ *signs*

1. first
2. second

> A quotation of
> two lines.

| name | number |
|---|---:|
| one | 1 |
| two | 2 |

```python
def answer() -> int:
    return 42  # not *italic* here
```

Emoji 👩‍👩‍👧‍👦 🇩🇪, 中文, العربية, and the end."""


def question(items: Sequence[Item]) -> str:
    """The last thing a person said."""
    for item in reversed(items):
        if isinstance(item, UserItem) and not item.note:
            return item.text
    return ""


def order(text: str) -> str | None:
    """The name after the last ``/rehearse`` of ``text``; empty for none after it, None for no order."""
    found = _ORDER.findall(text)
    return found[-1].lower().strip(".,!") if found else None


def results(items: Sequence[Item]) -> list[ToolResultItem]:
    """The tool results since the last thing a person said, oldest first."""
    out: list[ToolResultItem] = []
    for item in reversed(items):
        if isinstance(item, UserItem) and not item.note:
            break
        if isinstance(item, ToolResultItem):
            out.append(item)
    return out[::-1]


def said_back(text: str) -> str:
    """``text`` on one line, bounded, as a quotation."""
    line = " ".join(without_lone_surrogates(text).split())
    return f"“{line[:ECHO_LIMIT]}…”" if len(line) > ECHO_LIMIT else f"“{line}”"


def small_talk(items: Sequence[Item]) -> str:
    """The answer to whatever is no order."""
    heard = f"You said: {said_back(question(items))}" if question(items).strip() else "I heard nothing."
    if any(isinstance(item, AssistantItem) for item in items):
        said = sum(isinstance(item, UserItem) and not item.note for item in items)
        return (
            f"{heard}\n\nStill no model here, so that is all I can do with message {said} of this "
            "conversation. `/rehearse help` lists what I can play."
        )
    return (
        "Hello! Everything between you and me works. I am the built-in rehearsal, though: "
        "**no model is configured**, and nobody thinks about what you write.\n\n"
        f"{heard}\n\n{HOW_TO}\n\n"
        "Meanwhile, `/rehearse help` lists the faults and recoveries I can play for you."
    )


def help_text(unknown: str = "") -> str:
    """What can be played."""
    lines = [f"I cannot play {said_back(unknown)}.\n"] if unknown else []
    lines.append("`/rehearse NAME` plays one through the real machinery:\n")
    lines += [f"- `{name}`: {each.value}" for name, each in PERFORMANCES.items()]
    lines += [f"- `{name}`: {fault.about}" for name, fault in FAULTS.items()]
    lines.append("\nA fault is played, then cured where it can be; watch the notices. I am no model.")
    return "\n".join(lines)


def recovered(name: str, failures: int) -> str:
    """The answer after a played fault."""
    times = "once" if failures == 1 else f"{failures} times"
    return (
        f"Here is the answer. The call before it failed {times} on purpose ({FAULTS[name].about}); "
        "this is its repetition. I am the rehearsal, no model."
    )


def slow_text() -> str:
    """Some forty words."""
    return (
        "This answer takes its time. Each word is sent by itself, as a model would that thinks while it "
        "writes, so you can watch the message grow, press stop, or write something else in between. "
        "There is no model behind it. That was all."
    )


def long_text() -> str:
    """About ten thousand characters with code blocks in them."""
    parts = ["This is a long answer of numbered paragraphs; none may be lost, doubled or out of order."]
    for number in range(1, 41):
        parts.append(
            f"**Paragraph {number} of 40.** It says nothing that you need to know, and says it at a length "
            "that fills a message, so that where one ends and the next begins can be seen. "
            f"Count the paragraphs: after {number} comes {number + 1 if number < 40 else 'the end'}."
        )
        if number % 10 == 0:
            code = "\n".join(f"line_{number}_{row} = {row}  # a block must stay a block" for row in range(12))
            parts.append(f"```python\n{code}\n```")
    return "\n\n".join(parts)
