"""``hermes usage``: calls, tokens and money by model and day, of everybody together."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from hermes.cli.codes import OK
from hermes.cli.invocation import Invocation
from hermes.cli.owner import ask
from hermes.cli.screen import clean, console, print_json, table
from hermes.config.environment import Environment
from hermes.core.money import UsageLine


def usage(days: int, invocation: Invocation) -> int:
    """Today by model, then day by day; ``--json`` gives the numbers."""
    environment = Environment.read()
    found: dict[str, Any] = {"day": "", "today": asdict(UsageLine("today")), "models": [], "days": [], "caps_usd": {}}
    if (environment.home / "state.db").exists():  # looking makes no home
        found, _ = ask(environment, "usage", lambda actions: actions.usage.as_dict(days), days=str(days))
    if invocation.json:
        print_json(found)
        return OK
    lines = table("", "calls", "tokens in", "cached", "tokens out", "USD")
    for name, row in (
        *((one["name"], one) for one in found["models"]),
        *((f"all on {one['name']}", one) for one in found["days"]),
    ):
        lines.add_row(
            clean(name), f"{row['calls']:,}", f"{row['input_tokens']:,}", f"{row['cached_tokens']:,}",
            f"{row['output_tokens']:,}", _money(row),
        )  # fmt: skip
    screen = console()
    screen.print(lines)
    caps = {name: cap for name, cap in found["caps_usd"].items() if cap}
    said = ", ".join(f"{name.replace('_', ' ')} ${cap:g}" for name, cap in caps.items())
    screen.print(f"budgets: {said}" if said else "no budget is set (agent.budget)", style="dim")
    return OK


def _money(row: dict[str, Any]) -> str:
    if row["unpriced"] >= row["calls"] and not row["usd"]:
        return "price unknown" if row["calls"] else "0"
    unknown = f" + {row['unpriced']} of unknown price" if row["unpriced"] else ""
    return f"{row['usd']:.4f}{unknown}"
