"""Prices of well-known models, from the dated list that ships (``prices.json``); the configuration goes before it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

from hermes.config.adapters import ModelSpec
from hermes.config.model import Config
from hermes.core.money import Price

_DATED = re.compile(r"(?:[-@]\d{8}|-\d{4}-\d{2}-\d{2}|-latest)\Z")
"""What vendors and resellers put behind a name without changing its price: a date, ``-latest``."""


@cache
def shipped() -> Mapping[str, Any]:
    """The list: ``as_of``, ``sources`` and ``models``."""
    text = resources.files("hermes.config").joinpath("prices.json").read_text("utf-8")
    found: Mapping[str, Any] = json.loads(text)
    return found


def shipped_price(model: str) -> Price | None:
    """The listed price of a model, also under a dated name or with a reseller's prefix; None: not listed.

    A variant of another name (``:free``) is another price.
    """
    name = model.rpartition("/")[2].lower()
    listed = shipped()["models"]
    entry = listed.get(name)
    if entry is None and ":" not in name:
        entry = listed.get(_DATED.sub("", name))
    if entry is None:
        return None
    return Price(
        entry["input"], entry["output"], entry.get("cached", entry["input"]), entry.get("written", entry["input"])
    )


def price_of(spec: ModelSpec | None, model: str) -> Price | None:
    """What the configuration says, else what the list says; None: not known.

    Zeros that are written down say that a model is free, unless the list knows better.
    """
    given = spec.model_fields_set if spec is not None else frozenset()
    if spec is None or not given & {"price_input", "price_output"}:
        return shipped_price(model)
    listed = shipped_price(model)
    if listed is not None and not spec.price_input and not spec.price_output:
        return listed
    cached, written = spec.price_cached or spec.price_input, spec.price_cache_write or spec.price_input
    return Price(spec.price_input, spec.price_output, cached, written)


def without_price(config: Config) -> list[str]:
    """Models that may be called, have no price, and so are under none of the caps that are set."""
    budget = config.agent.budget
    if not any((budget.turn_usd, budget.session_usd, budget.user_day_usd, budget.day_usd)):
        return []
    chosen = dict.fromkeys((c.provider, c.model) for c in (config.model, *config.fallback_providers))
    found = []
    for provider, model in chosen:
        known = config.providers.get(provider)
        if known is not None and price_of(known.models.get(model), model) is None:
            found.append(f"{provider}/{model}")
    return found
