"""When two calls are the same call, and two results the same result."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.core.records import ToolEffect
from hermes.core.transcript import ImageRef, ToolCall, ToolResultItem, ToolStatus
from hermes.policy.call_keys import act_of, canonical_arguments, result_key, warned, without_warning

SAME = (
    ('{"a": 1, "b": 2}', '{"b":2,"a":1}'),
    ('{"a": 1}', ' { "a"\t:\n1 } '),
    ('{"a": 1}', '{"a": 1.0}'),
    ('{"a": 100}', '{"a": 1e2}'),
    ('{"a": -0.0}', '{"a": 0}'),
    ("", "{}"),
    ('{"q": "caf\\u00e9"}', '{"q": "cafe\\u0301"}'),
    ('{"caf\\u00e9": 1}', '{"cafe\\u0301": 1}'),
    ('{"q": " tea  time "}', '{"q": "tea time"}'),
    ('{"q": "a\\r\\nb  \\nc\\n"}', '{"q": "a\\nb\\nc"}'),
    ('{"a": [1, {"x": 2, "y": 3}]}', '{"a": [1.0, {"y": 3, "x": 2.0}]}'),
    ("not json", " not  json "),
    ("[" * 100_000, "[" * 100_000 + " "),
)
OTHER = (
    ('{"a": 1}', '{"a": 2}'),
    ('{"a": 1}', '{"a": "1"}'),
    ('{"a": 1}', '{"a": true}'),
    ('{"a": 0}', '{"a": false}'),
    ('{"a": null}', '{"a": ""}'),
    ('{"a": 1}', '{"A": 1}'),
    ('{"a": [1, 2]}', '{"a": [2, 1]}'),
    ('{"q": "Tea"}', '{"q": "tea"}'),
    ('{"code": "if x:\\n  y"}', '{"code": "if x:\\n    y"}'),
    ('{"a": 9007199254740993}', '{"a": 9007199254740992}'),
    ('{"a": 1.5}', '{"a": 1.25}'),
)


def key(arguments: str, name: str = "t") -> str:
    return act_of(ToolCall("c", name, arguments), ToolEffect.PURE).key


@pytest.mark.parametrize(("one", "other"), SAME)
def test_writing_the_same_in_another_way_is_the_same_call(one: str, other: str) -> None:
    assert key(one) == key(other)


@pytest.mark.parametrize(("one", "other"), OTHER)
def test_what_means_something_else_is_another_call(one: str, other: str) -> None:
    assert key(one) != key(other)


def test_another_tool_is_another_call_even_where_name_and_arguments_run_together() -> None:
    assert key("{}", "a") != key("{}", "b")
    assert key("bc", "a") != key("c", "ab")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(JSON, st.integers(0, 4))
def test_the_canonical_form_is_stable_and_layout_does_not_count(value: object, indent: int) -> None:
    text = json.dumps(value, indent=indent)
    canonical = canonical_arguments(text)
    assert canonical_arguments(json.dumps(value, ensure_ascii=False)) == canonical
    assert canonical_arguments(canonical) == canonical


@given(st.text(alphabet=st.characters(codec=None)))
def test_any_text_at_all_has_a_key(text: str) -> None:
    assert key(text) == key(text)


@given(st.text(), st.lists(st.text(), max_size=3))
def test_a_warning_is_no_part_of_a_result(text: str, warnings: list[str]) -> None:
    said = text
    for warning in warnings:
        said = warned(said, warning)
    assert without_warning(said) == without_warning(text)
    assert result_key(ToolResultItem("c", "t", said)) == result_key(ToolResultItem("d", "t", text))


def test_status_text_and_pictures_make_a_result() -> None:
    picture = ImageRef("ab", "image/png", 1, 1, 1)
    found = {
        result_key(ToolResultItem("c", "t", "x")),
        result_key(ToolResultItem("c", "t", "y")),
        result_key(ToolResultItem("c", "t", "x", ToolStatus.ERROR)),
        result_key(ToolResultItem("c", "t", "x", images=(picture,))),
    }
    assert len(found) == 4
