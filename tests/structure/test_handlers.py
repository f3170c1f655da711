"""R26: who may catch everything."""

from __future__ import annotations

import ast
import fnmatch
from collections.abc import Iterator

from tests.structure.source import Module, dotted, modules

BROAD = frozenset({"Exception", "BaseException", "builtins.Exception", "builtins.BaseException"})

ALLOWED = (
    "hermes/runtime/supervisor.py",  # a task's end is the supervisor's to judge
    "hermes/gateway/dispatch.py",  # per turn
    "hermes/gateway/lane.py",  # per turn, as a part of dispatch
    "hermes/agent/toolbox.py",  # per call
    "hermes/gateway/ingest.py",  # per row
    "hermes/gateway/courier.py",  # per row
    "hermes/platforms/*/failures.py",  # any SDK exception becomes facts
    "hermes/providers/*/failures.py",
)
PASSES_ON = ("hermes/store/*.py", "hermes/store/*/*.py")
"""Store may catch everything to roll back, if the handler then passes the exception on."""


def _broad(node: ast.ExceptHandler) -> bool:
    if node.type is None:
        return True
    kinds = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
    return any(dotted(kind) in BROAD for kind in kinds)


def _passes_on(node: ast.ExceptHandler) -> bool:
    """Ends with a bare `raise`, or hands the very exception to the one who waits for the transaction."""
    last = node.body[-1]
    if isinstance(last, ast.Raise):
        return last.exc is None
    if isinstance(last, ast.Return | ast.Expr) and last.value is not None and node.name:
        handed = isinstance(last, ast.Return) or "set_exception" in ast.dump(last.value)
        named = {child.id for child in ast.walk(last.value) if isinstance(child, ast.Name)}
        return handed and node.name in named
    return False


def _matches(module: Module, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch.fnmatchcase(module.name, pattern) for pattern in patterns)


def _names_all(node: ast.Call) -> bool:
    return any(dotted(argument) in BROAD for argument in node.args)


def _found(module: Module) -> Iterator[ast.AST]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ExceptHandler) and _broad(node):
            if not (_matches(module, PASSES_ON) and _passes_on(node)):
                yield node
        elif isinstance(node, ast.Call) and dotted(node.func).endswith("suppress") and _names_all(node):
            yield node


def test_only_the_named_places_catch_everything() -> None:
    wrong = [
        module.at(node)
        for module in modules("hermes")
        if not _matches(module, ALLOWED)
        for node in _found(module)
    ]
    assert not wrong, "R26: name the exceptions, or let a supervisor see them"


def test_cancellation_is_never_swallowed() -> None:
    """A handler of CancelledError that does nothing keeps a cancelled task alive."""
    wrong = []
    for module in modules("hermes"):
        for node in ast.walk(module.tree):
            if not isinstance(node, ast.ExceptHandler) or node.type is None:
                continue
            kinds = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
            if any(dotted(kind).endswith("CancelledError") for kind in kinds) and all(
                isinstance(statement, ast.Pass | ast.Continue) for statement in node.body
            ):
                wrong.append(module.at(node))
    assert not wrong
