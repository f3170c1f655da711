"""What a loop of tool calls is called, to the model and to the person."""

from __future__ import annotations

_FACTS = {
    "exact_failure": "the same call failed {count} times with the same arguments",
    "same_tool_failure": "{tool} failed {count} times in a row, whatever the arguments",
    "idempotent_no_progress": "the same call gave the same result {count} times",
    "cycle": "the same {size} calls went round {count} times with the same results",
    "spread": "{tool} gave the same result to {count} calls in a row",
    "nothing_works": "{count} calls in a row failed, whatever the tool",
    "nothing_new": "{count} calls in a row brought nothing that was not known before",
}
_ADVICE = {
    "exact_failure": "Do not repeat it unchanged: change the arguments, use another tool, or tell the person "
    "what is in the way.",
    "same_tool_failure": "Read the errors, look with another tool for what is wrong, or tell the person what is "
    "in the way.",
    "idempotent_no_progress": "Use the result you have, or try something else; it will not change by asking again.",
    "cycle": "Leave the circle: use what you have, try something else, or tell the person what is in the way.",
    "spread": "More of the same will hardly differ: use what you have, try something else, or ask the person.",
    "nothing_works": "Stop guessing: use what you know, or tell the person what is in the way.",
    "nothing_new": "Use what you know, try something you have not tried, or ask the person.",
}
_LONGEST_NAME = 60


def fact(kind: str, tool: str, count: int, size: int) -> str:
    """What happened, as half a sentence. ``size``: calls of a circle."""
    return _FACTS[kind].format(tool=tool[:_LONGEST_NAME], count=count, size=size)


def advice(kind: str) -> str:
    """What the model is to do instead."""
    return _ADVICE[kind]


def halt_sentence(kind: str, tool: str, count: int, size: int) -> str:
    """What the person is told when the turn ends."""
    name = " ".join(tool.replace("`", "").split())[:_LONGEST_NAME]
    happened = fact(kind, f"`{name}`", count, size)
    if kind in ("exact_failure", "idempotent_no_progress"):
        happened = f"{happened} (`{name}`)"
    return (
        f"I stopped because I was going in circles: {happened}. "
        "Tell me what to do differently, or say “go on” and I try again."
    )
