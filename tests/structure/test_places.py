"""What may stand where, as far as import-linter cannot say it (see pyproject.toml for what it does)."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

from tests.structure.source import ROOT, attributes, calls, imported, modules, texts

SDK_PLACES: dict[str, tuple[str, ...]] = {
    "telegram": ("hermes/platforms/telegram/",),
    "discord": ("hermes/platforms/discord/",),
    "slack_bolt": ("hermes/platforms/slack/",),
    "slack_sdk": ("hermes/platforms/slack/",),
    "openai": ("hermes/providers/openai/",),
    "anthropic": ("hermes/providers/anthropic/",),
    "httpx": ("hermes/platforms/telegram/",),
    "httpx2": ("hermes/providers/",),
    "mcp": ("hermes/tools/mcp/",),
    "playwright": ("hermes/tools/browser/",),
    "sqlite3": ("hermes/store/",),
    "aiosqlite": ("hermes/store/",),
}
THREADS = ("threading", "_thread", "concurrent.futures", "multiprocessing", "queue")
PROCESSES = ("subprocess", "pty")
STATEMENT = re.compile(
    r"\b(SELECT\s.+\sFROM\s|INSERT\s+(OR\s+\w+\s+)?INTO\s|UPDATE\s+\w+\s+SET\s|DELETE\s+FROM\s"
    r"|CREATE\s+(UNIQUE\s+)?(TABLE|INDEX|TRIGGER|VIEW|VIRTUAL)\s|PRAGMA\s|BEGIN\s+IMMEDIATE)",
    re.DOTALL,
)


def _is(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")


def test_an_sdk_is_imported_in_its_adapter_only() -> None:
    wrong = [
        f"{module.at(node)} {name}"
        for module in modules("hermes")
        for node, name in imported(module)
        for sdk, places in SDK_PLACES.items()
        if _is(name, sdk) and not module.within(*places)
    ]
    assert not wrong


def test_an_adapters_settings_import_no_sdk() -> None:
    wrong = [
        f"{module.at(node)} {name}"
        for module in modules("hermes")
        if re.fullmatch(r"hermes/(platforms|providers)/\w+/(config|__init__)\.py", module.name)
        for node, name in imported(module)
        if any(_is(name, sdk) for sdk in SDK_PLACES)
    ]
    assert not wrong, "R42: `check` and `--help` must not pay for an SDK"


def test_the_program_starts_without_loading_any_sdk() -> None:
    outside = [
        module.name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        for module in modules("hermes")
        if module.within("hermes/app/", "hermes/cli/", "hermes/gateway/", "hermes/agent/", "hermes/config/")
    ]
    if any(module.name == "hermes/__main__.py" for module in modules("hermes")):
        outside.append("hermes.__main__")
    code = (
        "import importlib, json, sys\n"
        f"for name in {outside!r}: importlib.import_module(name)\n"
        f"print(json.dumps([name for name in {sorted(SDK_PLACES)!r} if name in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    loaded = set(json.loads(done.stdout.splitlines()[-1])) - {"sqlite3", "aiosqlite"}
    assert not loaded, f"loaded before any section asked for it: {sorted(loaded)}"


def test_the_environment_is_read_in_config_only() -> None:
    wrong = [
        f"{module.at(node)} {name}"
        for module in modules("hermes")
        if not module.within("hermes/config/")
        for node, name in [*imported(module), *attributes(module)]
        if name in {"os.environ", "os.environb", "os.getenv", "os.putenv", "os.unsetenv"}
    ]
    assert not wrong


def _uses(packages: tuple[str, ...], calls_of: frozenset[str]) -> list[str]:
    """Outside store and runtime: imports of `packages`, calls whose whole or last name is in `calls_of`."""
    return [
        f"{module.at(node)} {name}"
        for module in modules("hermes")
        if not module.within("hermes/store/", "hermes/runtime/")
        for node, name in [
            *((node, name) for node, name in imported(module) if any(_is(name, one) for one in packages)),
            *((node, name) for node, name in calls(module) if {name, name.rpartition(".")[2]} & calls_of),
        ]
    ]


def test_threads_live_in_store_and_runtime_only() -> None:
    wrong = _uses(THREADS, frozenset({"to_thread", "run_in_executor"}))
    assert not wrong, "R24: runtime.offload is the place"


def test_helper_processes_live_in_runtime_only() -> None:
    starts = {"create_subprocess_exec", "create_subprocess_shell", "subprocess_exec", "os.system", "os.popen"}
    wrong = _uses(PROCESSES, frozenset(starts | {"os.fork", "os.posix_spawn"}))
    assert not wrong, "R24: runtime.offload is the place"


def test_statements_of_sql_stand_in_store_only() -> None:
    wrong = [
        f"{module.at(node)} {text[:60]!r}"
        for module in modules("hermes")
        if not module.within("hermes/store/")
        for node, text in texts(module)
        if STATEMENT.search(text)
    ]
    assert not wrong


def test_tasks_are_started_by_supervisors_only() -> None:
    """A task group's own `create_task` is another matter: its tasks stand and fall together (R25)."""
    wrong = [
        f"{module.at(node)} {name}"
        for module in modules("hermes")
        if not module.within("hermes/runtime/")
        for node, name in calls(module)
        if name in {"asyncio.create_task", "asyncio.ensure_future", "ensure_future", "create_task"}
        or re.search(r"loop(\?|\.)*\.create_task$|get_running_loop.*create_task$", name)
    ]
    assert not wrong


@pytest.mark.parametrize(
    "call", ["time.sleep", "asyncio.run_coroutine_threadsafe", "os._exit", "sys.exit", "os.kill"]
)
def test_calls_that_only_few_may_make(call: str) -> None:
    places = {
        "time.sleep": ("hermes/store/", "hermes/runtime/"),
        "asyncio.run_coroutine_threadsafe": ("hermes/runtime/",),
        "os._exit": ("hermes/__main__.py", "hermes/app/process.py", "hermes/runtime/"),
        "sys.exit": ("hermes/__main__.py", "hermes/cli/"),
        "os.kill": ("hermes/runtime/", "hermes/cli/"),
    }[call]
    wrong = [
        module.at(node)
        for module in modules("hermes")
        if not module.within(*places)
        for node, name in calls(module)
        if name == call
    ]
    assert not wrong
