"""YAML text as a tree that remembers its lines. Reads safely: bounded, no tags, no objects.

The events of PyYAML's parser are composed here, without recursion, because the stock loaders forget lines,
let the last of two equal keys win, and read ``12:30`` as 750.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

import yaml
from yaml.events import (
    AliasEvent,
    CollectionEndEvent,
    DocumentStartEvent,
    Event,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    SequenceStartEvent,
)

from hermes.config.display import show_path
from hermes.config.errors import Problem
from hermes.config.yaml_traps import explain_syntax, kind_of_plain

MAX_BYTES = 256 * 1024
MAX_DEPTH = 32
MAX_NODES = 20_000
"""Counted after aliases are followed, so that a small file cannot unfold into a large one."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """Text of one value. ``kind``: null, bool, int, float, sexagesimal or text; quoted text is text."""

    text: str
    kind: str
    line: int
    quoted: bool = False


@dataclass(slots=True)
class Mapping:
    """Keys in order; each key once."""

    line: int
    entries: dict[str, tuple[int, Node]] = field(default_factory=dict)


@dataclass(slots=True)
class Sequence:
    line: int
    items: list[Node] = field(default_factory=list)


Node: TypeAlias = "Scalar | Mapping | Sequence"


class Unreadable(Exception):
    """The text is not one YAML document that we accept. ``problems`` says why."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__("\n".join(problem.render() for problem in problems))
        self.problems = problems


def parse(text: str, file: str) -> tuple[Mapping, list[Problem]]:
    """The document's mapping, with problems that did not stop the reading (duplicate keys and the like).

    Raises Unreadable when there is nothing to go on with: syntax, bounds, no mapping at the top.
    """
    composer = _Composer(file)
    try:
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            composer.take(event)
    except yaml.YAMLError as error:
        raise Unreadable(*composer.problems, explain_syntax(error, text, file)) from None
    root = composer.root
    if root is None or (isinstance(root, Scalar) and root.kind == "null"):
        raise Unreadable(
            Problem(
                file,
                0,
                "",
                "the file is empty (nothing but blanks and comments)",
                "a mapping of sections",
                "delete the file to use defaults, or start from config.example.yaml",
            )
        )
    if not isinstance(root, Mapping):
        what = "a list" if isinstance(root, Sequence) else "plain text"
        raise Unreadable(
            Problem(
                file,
                root.line,
                "",
                f"the file holds {what} at the top",
                "sections, each `name:` and its keys",
                "remove the leading `-`"
                if isinstance(root, Sequence)
                else "each key needs a colon and a blank",
            )
        )
    return root, composer.problems


@dataclass(slots=True)
class _Open:
    """A collection under construction; ``key`` waits for its value."""

    node: Mapping | Sequence
    anchor: str | None
    key: tuple[str, int] | None = None
    merges: list[tuple[int, Node]] = field(default_factory=list)
    broken_key: bool = False


class _Composer:
    def __init__(self, file: str) -> None:
        self.file = file
        self.root: Node | None = None
        self.problems: list[Problem] = []
        self._open: list[_Open] = []
        self._anchors: dict[str, Node] = {}
        self._sizes: dict[int, int] = {}
        self._nodes = 0

    def take(self, event: Event) -> None:
        assert event.start_mark is not None
        line = event.start_mark.line + 1
        if isinstance(event, DocumentStartEvent) and self.root is not None:
            raise Unreadable(
                self._problem(
                    line,
                    "a second YAML document starts here",
                    "one document in a file",
                    "remove the line `---` or everything from it on",
                )
            )
        if isinstance(event, NodeEvent):
            self._count(line, 1)
        if isinstance(event, AliasEvent):
            self._place(self._alias(event, line), line)
        elif isinstance(event, ScalarEvent):
            self._check_tag(event.tag, line)
            quoted = event.style is not None
            kind = "text" if quoted or event.tag is not None else kind_of_plain(event.value)
            node = Scalar(event.value, kind, line, quoted)
            self._remember(event.anchor, node, 1)
            self._place(node, line)
        elif isinstance(event, MappingStartEvent | SequenceStartEvent):
            self._check_tag(event.tag, line)
            if len(self._open) >= MAX_DEPTH:
                raise Unreadable(
                    self._problem(
                        line,
                        f"nesting deeper than {MAX_DEPTH} levels",
                        f"{MAX_DEPTH} levels",
                        "check the brackets and the indentation",
                    )
                )
            opened: Mapping | Sequence = (
                Mapping(line) if isinstance(event, MappingStartEvent) else Sequence(line)
            )
            self._open.append(_Open(opened, event.anchor))
        elif isinstance(event, CollectionEndEvent):
            self._close()

    def _close(self) -> None:
        done = self._open.pop()
        if isinstance(done.node, Mapping):
            for line, source in done.merges:
                self._merge(done.node, source, line)
        self._remember(done.anchor, done.node, _size(done.node, self._sizes))
        self._place(done.node, done.node.line)

    def _place(self, node: Node, line: int) -> None:
        if not self._open:
            self.root = node
            return
        top = self._open[-1]
        if isinstance(top.node, Sequence):
            top.node.items.append(node)
        elif top.key is None and not top.broken_key:
            self._take_key(top, node, line)
        else:
            key, top.key, top.broken_key = top.key, None, False
            if key is None:
                return
            name, key_line = key
            if name == "<<":
                top.merges.append((key_line, node))
            else:
                top.node.entries[name] = (key_line, node)

    def _take_key(self, top: _Open, node: Node, line: int) -> None:
        assert isinstance(top.node, Mapping)
        if not isinstance(node, Scalar):
            top.broken_key = True
            self.problems.append(
                self._problem(
                    line,
                    "a mapping or list stands where a key belongs",
                    "a name",
                    "put quotes around text that starts with { or [",
                )
            )
        elif not node.quoted and node.kind in {"bool", "null"}:
            top.broken_key = True
            read_as = "nothing" if node.kind == "null" else "true or false"
            self.problems.append(
                self._problem(
                    line,
                    f"YAML reads the key here as {read_as}, not as a name",
                    "a name",
                    "put the key in quotes",
                )
            )
        elif node.text in top.node.entries:
            top.broken_key = True
            first = top.node.entries[node.text][0]
            self.problems.append(
                self._problem(
                    line,
                    f"this key stands twice in one section (first in line {first})",
                    "each key once",
                    "remove one of the two",
                    node.text,
                )
            )
        else:
            top.key = (node.text, line)

    def _merge(self, into: Mapping, source: Node, line: int) -> None:
        sources = source.items if isinstance(source, Sequence) else [source]
        for one in sources:
            if not isinstance(one, Mapping):
                self.problems.append(
                    self._problem(
                        line,
                        "`<<` is given something that is no mapping",
                        "an alias of a mapping",
                        "write `<<: *name`",
                    )
                )
                continue
            self._count(line, _size(one, self._sizes))
            for key, entry in one.entries.items():
                into.entries.setdefault(key, entry)

    def _alias(self, event: AliasEvent, line: int) -> Node:
        node = self._anchors.get(event.anchor or "")
        if node is None:
            raise Unreadable(
                self._problem(
                    line,
                    "an alias (`*name`) whose anchor (`&name`) is not above it",
                    "an alias after its anchor",
                    "put the value in quotes if it is text that starts with *",
                )
            )
        self._count(line, _size(node, self._sizes))
        return node

    def _remember(self, anchor: str | None, node: Node, size: int) -> None:
        self._sizes[id(node)] = size
        if anchor is not None:
            self._anchors[anchor] = node

    def _count(self, line: int, more: int) -> None:
        self._nodes += more
        if self._nodes > MAX_NODES:
            raise Unreadable(
                self._problem(
                    line,
                    f"more than {MAX_NODES} values once aliases are followed",
                    f"{MAX_NODES} values",
                    "use fewer aliases",
                )
            )

    def _check_tag(self, tag: str | None, line: int) -> None:
        if tag is not None and tag not in {"!", "tag:yaml.org,2002:str"}:
            raise Unreadable(
                self._problem(
                    line,
                    "a YAML tag (a word with ! before the value)",
                    "plain values",
                    "remove the tag; put quotes around text that starts with !",
                )
            )

    def _problem(self, line: int, found: str, allowed: str, cure: str, key: str = "") -> Problem:
        path = [opened.key[0] if opened.key else None for opened in self._open]
        names = [name for name in path if name is not None]
        return Problem(self.file, line, show_path([*names, key] if key else names), found, allowed, cure)


def _size(node: Node, known: dict[int, int]) -> int:
    """Values below and including ``node``; children were measured before their parent."""
    if isinstance(node, Scalar):
        return 1
    children = [entry[1] for entry in node.entries.values()] if isinstance(node, Mapping) else node.items
    return 1 + sum(known.get(id(child), 1) for child in children)
