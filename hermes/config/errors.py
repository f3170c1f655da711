"""What is wrong with a configuration: all problems at once, each with its place and its cure."""

from __future__ import annotations

from dataclasses import dataclass

from hermes.core.errors import HermesError


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing to mend. No field ever holds the value of a secret or of a variable.

    ``file``: path or the word ``environment``; ``line``: 1-based, 0 when there is none; ``path``: dotted key,
    may be empty; ``found`` and ``allowed``: half sentences, ``allowed`` may be empty; ``cure``: one line.
    """

    file: str
    line: int
    path: str
    found: str
    allowed: str = ""
    cure: str = ""

    def render(self) -> str:
        """``FILE:LINE: path: what was found, what is allowed``, and the cure on an indented line."""
        place = f"{self.file}:{self.line}" if self.line else self.file
        text = f"{place}: {self.path}: {self.found}" if self.path else f"{place}: {self.found}"
        if self.allowed:
            text += f"; allowed: {self.allowed}"
        return f"{text}\n    {self.cure}" if self.cure else text


class ConfigError(HermesError):
    """A configuration that cannot be used. ``problems`` is never empty and in order of lines."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        self.problems = tuple(sorted(problems, key=lambda problem: (problem.file, problem.line)))
        super().__init__(self.render())

    def render(self) -> str:
        """All problems, one below the other, with a count."""
        count = len(self.problems)
        head = "1 problem in the configuration:" if count == 1 else f"{count} problems in the configuration:"
        return "\n".join([head, *(problem.render() for problem in self.problems)])
