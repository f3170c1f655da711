"""Prices: the configuration's, else those of the dated list that ships."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from hermes.config.adapters import ModelSpec
from hermes.config.prices import price_of, shipped, shipped_price
from hermes.core.money import Price
from tests.unit.config.loading import load_text

SONNET = Price(3, 15, 0.3, 3.75)
NAMES = (
    ("claude-sonnet-4-5", SONNET),
    ("claude-sonnet-4-5-20250929", SONNET),
    ("anthropic/claude-sonnet-4-5", SONNET),
    ("claude-sonnet-4-5@20250929", SONNET),
    ("gpt-4o-2024-08-06", Price(2.5, 10, 1.25, 2.5)),
    ("openai/gpt-4o-mini", Price(0.15, 0.6, 0.075, 0.15)),
    ("GPT-5", Price(1.25, 10, 0.125, 1.25)),
    ("gpt-5-turbo-ultra", None),
    ("deepseek/deepseek-chat:free", None),
    ("some-model", None),
    ("", None),
)


@pytest.mark.parametrize(("name", "price"), NAMES)
def test_a_listed_model_is_found_under_the_names_it_goes_by(name: str, price: Price | None) -> None:
    assert shipped_price(name) == price


def test_the_list_says_how_old_it_is_and_where_it_is_from() -> None:
    found = shipped()
    assert date.fromisoformat(found["as_of"]) <= date(2100, 1, 1)
    assert all(found["sources"].values())


@pytest.mark.parametrize("name", shipped()["models"])
def test_every_listed_price_is_plausible(name: str) -> None:
    price = shipped_price(name)
    assert price is not None
    assert 0 < price.cached <= price.input <= price.written
    assert price.input < price.output <= 200


CONFIGURED = (
    (ModelSpec(price_input=1.0, price_output=2.0), "gpt-4o", Price(1, 2, 1, 1)),
    (ModelSpec(price_input=1.0, price_output=2.0, price_cached=0.1, price_cache_write=1.2), "m", Price(1, 2, 0.1, 1.2)),
    (ModelSpec(price_input=0.0, price_output=0.0), "gpt-4o", Price(2.5, 10, 1.25, 2.5)),
    (ModelSpec(price_input=0.0, price_output=0.0), "my-own", Price(0, 0, 0, 0)),
    (ModelSpec(context_window=1000), "gpt-4o", Price(2.5, 10, 1.25, 2.5)),
    (ModelSpec(context_window=1000), "m", None),
    (None, "m", None),
)


@pytest.mark.parametrize(("spec", "model", "price"), CONFIGURED)
def test_the_configuration_goes_before_the_list(spec: ModelSpec | None, model: str, price: Price | None) -> None:
    assert price_of(spec, model) == price


CAPPED = """
model: {provider: main, model: MODEL}
providers: {main: {kind: openai, base_url: "http://127.0.0.1:8080/v1"}}
agent: {budget: {day_usd: CAP}}
"""


@pytest.mark.parametrize(("model", "cap", "told"), [("some-model", 5, 1), ("gpt-4o", 5, 0), ("some-model", 0, 0)])
def test_who_sets_a_cap_is_told_of_models_without_a_price(model: str, cap: int, told: int, tmp_path: Path) -> None:
    notices = load_text(CAPPED.replace("MODEL", model).replace("CAP", str(cap)), tmp_path).notices
    assert sum("no cap on money applies to it" in one for one in notices) == told
