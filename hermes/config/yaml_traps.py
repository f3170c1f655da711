"""YAML's traps, each with its own sentence: what plain text turns into, what a syntax error means."""

from __future__ import annotations

import re

import yaml

from hermes.config.errors import Problem

_BOOL = re.compile(r"(?:yes|no|true|false|on|off)\Z", re.IGNORECASE)
_TRUE = frozenset({"yes", "true", "on"})
_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_SEXAGESIMAL = re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?\Z")
_INT = re.compile(r"[-+]?(?:0|[1-9][0-9]*)\Z")
_FLOAT = re.compile(r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?\Z|[-+]?[0-9]+[eE][-+]?[0-9]+\Z")
_VARIABLE_IN_FLOW = re.compile(r"[{\[,:]\s*\$\{")
_IPV6 = re.compile(r":\s*\[[0-9A-Fa-f:.%]*:[0-9A-Fa-f:.%]*\](?::\d+)?\s*(?:[,}#].*)?$")


def kind_of_plain(text: str) -> str:
    """null, bool, int, float, sexagesimal or text: YAML 1.1 as readers of configuration files know it,
    except that octal and underscored numbers stay text (nobody means them)."""
    if text in _NULL:
        return "null"
    if _BOOL.match(text):
        return "bool"
    if _INT.match(text):
        return "int"
    if _SEXAGESIMAL.match(text):
        return "sexagesimal"
    if _FLOAT.match(text):
        return "float"
    return "text"


def truth(text: str) -> bool:
    """What YAML makes of one of its words for true and false."""
    return text.lower() in _TRUE


def sexagesimal_value(text: str) -> str:
    """The number YAML 1.1 makes of ``12:30`` (base 60), as text."""
    total = 0.0
    for part in text.replace("_", "").lstrip("+-").split(":"):
        total = total * 60 + float(part)
    return f"{'-' if text.startswith('-') else ''}{total:g}"


def is_bracketed_address(line: str) -> bool:
    """True for ``key: [::1]:8642`` and ``key: [::1]``, which YAML takes for a list."""
    return _IPV6.search(line) is not None


def explain_syntax(error: yaml.YAMLError, text: str, file: str) -> Problem:
    """The likeliest meaning of a syntax error. Never quotes the text around it: it may hold a secret."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    line = mark.line + 1 if mark is not None else 0
    lines = text.splitlines()
    here = lines[line - 1] if 0 < line <= len(lines) else ""
    problem = getattr(error, "problem", None) or ""
    if "\\t" in problem or "\t" in here[: len(here) - len(here.lstrip())]:
        return Problem(file, line, "", "a tab is used to indent", "blanks", "replace each tab by two blanks")
    for number in (line, line - 1):
        source = lines[number - 1] if 0 < number <= len(lines) else ""
        if is_bracketed_address(source):
            return bracketed_address(file, number, "")
        if _VARIABLE_IN_FLOW.search(source):
            where = "braces" if "{" in source.replace("${", "") else "brackets"
            return Problem(
                file,
                number,
                "",
                f"${{…}} without quotes inside {where}, which YAML reads as a mapping",
                "a quoted scalar",
                'write "${NAME}" in quotes',
            )
    return _explain_context(error, problem, file, line)


_OPENED = {
    "while scanning a quoted scalar": ("a quote that is opened here and not closed", "close the quote"),
    "while parsing a flow mapping": (
        "a { that is opened here and not closed, or lacks a comma",
        "look for the }",
    ),
    "while parsing a flow sequence": (
        "a [ that is opened here and not closed, or lacks a comma",
        "look for the ]",
    ),
}
_HERE = {
    "while scanning a simple key": (
        "a line without a colon",
        "write `key: value`, with a blank after the colon",
    ),
    "while parsing a block mapping": (
        "a line that fits no section above it",
        "indent it as the other keys of its section, with blanks",
    ),
    "while parsing a block collection": (
        "a line that fits no list above it",
        "indent it as the other items of its list, with blanks",
    ),
}


def _explain_context(error: yaml.YAMLError, problem: str, file: str, line: int) -> Problem:
    context = getattr(error, "context", None) or ""
    opened = getattr(error, "context_mark", None)
    if context in _OPENED and opened is not None:
        found, cure = _OPENED[context]
        return Problem(file, opened.line + 1, "", f"not YAML: {found}", "", cure)
    if problem.endswith(("'}'", "']'")) and context in _HERE:
        return Problem(file, line, "", "not YAML: a bracket that closes nothing", "", "remove it, or open it")
    if context in _HERE:
        found, cure = _HERE[context]
        return Problem(file, line, "", f"not YAML: {found}", "", cure)
    if problem == "mapping values are not allowed here":
        found, cure = (
            "a second colon in one line",
            'put text that holds ": " in quotes; begin each key on its own line',
        )
        return Problem(file, line, "", f"not YAML: {found}", "", cure)
    cure = "check colons (`key: value` needs the blank), quotes and indentation at and above this line"
    return Problem(file, line, "", f"not YAML: {_harmless(problem)}", "", cure)


def bracketed_address(file: str, line: int, path: str) -> Problem:
    """``[::1]:8642`` unquoted."""
    return Problem(
        file,
        line,
        path,
        "an address in brackets without quotes, which YAML reads as a list",
        "a quoted address",
        'write it in quotes: "[::1]:8642"',
    )


def _harmless(problem: str) -> str:
    """The parser's own words without what it quotes from the file (single characters stay)."""
    return re.sub(r"'[^']{3,}'|\"[^\"]{3,}\"", "…", problem) or "the parser gave up here"
