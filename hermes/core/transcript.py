"""What is said in a session, as stored and as sent to a model.

A transcript is *legal* when each tool call of an AssistantItem is followed by exactly one
ToolResultItem before the next user or assistant item (DESIGN promise 6).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, assert_never


class FinishReason(StrEnum):
    """Why a model stopped, in the field's words."""

    STOP = "stop"
    TOOL_CALLS = "tool_calls"
    LENGTH = "length"
    CONTENT_FILTER = "content_filter"


class ToolStatus(StrEnum):
    """How a tool call ended."""

    OK = "ok"
    ERROR = "error"
    UNKNOWN = "unknown"  # started and not finished: may or may not have happened (promise 7)
    NOT_RUN = "not_run"  # never started


@dataclass(frozen=True, slots=True)
class ImageRef:
    """A picture by the hash of its bytes; the bytes are in the media store and never in a transcript.

    ``mime`` is what the bytes are, ``size`` in bytes, ``width`` and ``height`` in pixels.
    """

    sha256: str
    mime: str
    size: int
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class ImageData:
    """A picture's bytes as they go into a request."""

    mime: str
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class FileRef:
    """A file that goes out with the turn's answer, by the hash of its bytes, which are in the spool. ``size`` in
    bytes."""

    sha256: str
    name: str
    mime: str
    size: int


@dataclass(frozen=True, slots=True)
class UserItem:
    """A person's words. ``note`` marks what the gateway says on its own behalf (an edit, a restart)."""

    text: str
    note: bool = False
    images: tuple[ImageRef, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call the model asks for; ``arguments`` is the JSON text exactly as the model wrote it."""

    call_id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class AssistantItem:
    """A model's answer. ``opaque`` holds provider-specific blocks (thinking), keyed by origin."""

    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    finish: FinishReason = FinishReason.STOP
    provider: str = ""
    model: str = ""
    opaque: tuple[Mapping[str, Any], ...] = field(default=())


@dataclass(frozen=True, slots=True)
class ToolResultItem:
    """What came back for one call."""

    call_id: str
    name: str
    text: str
    status: ToolStatus = ToolStatus.OK
    images: tuple[ImageRef, ...] = ()
    files: tuple[FileRef, ...] = ()


Item = UserItem | AssistantItem | ToolResultItem


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts as the provider reported them; zero where it reported none."""

    input_tokens: int = 0  # the whole prompt, what came from the cache or went into it included
    output_tokens: int = 0
    cached_tokens: int = 0  # read from the provider's cache
    written_tokens: int = 0  # put into it


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as a model sees it; ``parameters`` is a JSON schema object."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One call to a model; an adapter renders it into its dialect. ``key``: the credential to use in place of
    the adapter's own; never shown. ``images``: the bytes of the items' pictures by the hash that their
    ImageRef names; a picture without bytes here is told in words. ``betas``: features to ask for by name."""

    model: str
    system: str
    items: tuple[Item, ...]
    tools: tuple[ToolSpec, ...] = ()
    max_output: int | None = None
    key: str | None = field(default=None, repr=False, compare=False)
    images: Mapping[str, ImageData] = field(default_factory=dict, repr=False, compare=False)
    betas: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ModelReply:
    """A complete answer: never half a stream, never half a tool call."""

    text: str
    tool_calls: tuple[ToolCall, ...]
    finish: FinishReason
    usage: Usage
    model: str
    opaque: tuple[Mapping[str, Any], ...] = field(default=())
    limits: Mapping[str, str] = field(default_factory=dict, compare=False)  # rate-limit headers, lower case


def dump_item(item: Item) -> str:
    """One item as compact JSON text; ``load_item`` gives an equal item back."""
    match item:
        case UserItem():
            body: dict[str, Any] = {"t": "u", "x": item.text}
            if item.note:
                body["n"] = 1
            if item.images:
                body["g"] = [_image_row(image) for image in item.images]
        case AssistantItem():
            body = {"t": "a", "x": item.text, "f": item.finish.value, "p": item.provider, "m": item.model}
            if item.tool_calls:
                body["c"] = [[c.call_id, c.name, c.arguments] for c in item.tool_calls]
            if item.opaque:
                body["o"] = [dict(o) for o in item.opaque]
        case ToolResultItem():
            body = {"t": "r", "i": item.call_id, "w": item.name, "x": item.text, "s": item.status.value}
            if item.images:
                body["g"] = [_image_row(image) for image in item.images]
            if item.files:
                body["l"] = [[f.sha256, f.name, f.mime, f.size] for f in item.files]
        case _:
            assert_never(item)
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"))


def load_item(text: str) -> Item:
    """The item that ``dump_item`` wrote. Raises ValueError for anything else."""
    body = json.loads(text)
    match body.get("t"):
        case "u":
            return UserItem(body["x"], bool(body.get("n")), _images(body))
        case "a":
            calls = tuple(ToolCall(*c) for c in body.get("c", ()))
            return AssistantItem(
                body["x"], calls, FinishReason(body["f"]), body["p"], body["m"], tuple(body.get("o", ()))
            )
        case "r":
            files = tuple(FileRef(*row) for row in body.get("l", ()))
            return ToolResultItem(body["i"], body["w"], body["x"], ToolStatus(body["s"]), _images(body), files)
        case other:
            raise ValueError(f"not a transcript item: {other!r}")


def _image_row(image: ImageRef) -> list[str | int]:
    return [image.sha256, image.mime, image.size, image.width, image.height]


def _images(body: Mapping[str, Any]) -> tuple[ImageRef, ...]:
    return tuple(ImageRef(*row) for row in body.get("g", ()))


def images_of(items: Iterable[Item]) -> tuple[ImageRef, ...]:
    """Every picture in ``items``, each once, oldest first."""
    found: dict[str, ImageRef] = {}
    for item in items:
        if not isinstance(item, AssistantItem):
            found.update((image.sha256, image) for image in item.images)
    return tuple(found.values())


def files_of(items: Iterable[Item]) -> tuple[FileRef, ...]:
    """Every file that goes out, each once, in order."""
    found = [file for item in items if isinstance(item, ToolResultItem) for file in item.files]
    return tuple(dict.fromkeys(found))


def searchable_text(item: Item) -> str:
    """The words of an item that full-text search should find; empty for none."""
    return item.text


def open_calls(items: tuple[Item, ...]) -> tuple[ToolCall, ...]:
    """The tool calls of the last assistant item that have no result yet, in order."""
    answered: set[str] = set()
    for item in reversed(items):
        match item:
            case ToolResultItem():
                answered.add(item.call_id)
            case AssistantItem():
                return tuple(c for c in item.tool_calls if c.call_id not in answered)
            case UserItem():
                if not item.note:
                    return ()
            case _:
                assert_never(item)
    return ()


def without_lone_surrogates(text: str) -> str:
    """``text`` with each unpaired surrogate replaced by U+FFFD: it can be stored and sent as UTF-8."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
