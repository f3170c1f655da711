"""Transcripts of any shape, legal and illegal."""

from __future__ import annotations

from hypothesis import strategies as st

from hermes.core.transcript import AssistantItem, Item, ToolCall, ToolResultItem, ToolStatus, UserItem

_IDS = st.sampled_from(["c1", "c2", "c3", "call:ü", ""])
_TEXT = st.text(st.one_of(st.characters(), st.sampled_from(["\ud83d", "\udc00"])), max_size=6)
_ARGUMENTS = st.sampled_from(["{}", '{"a": "\\ud83d"}', "", "{oops", "[]", '"x"', '{"ü": "\ud83d"}'])
_CALL = st.builds(ToolCall, _IDS, st.just("tool"), _ARGUMENTS)
_CALLS = st.lists(_CALL, max_size=3, unique_by=lambda call: call.call_id)

ITEMS = st.lists(
    st.one_of(
        st.builds(UserItem, _TEXT, st.booleans()),
        st.builds(AssistantItem, _TEXT, _CALLS.map(tuple)),
        st.builds(ToolResultItem, _IDS, st.just("tool"), _TEXT, st.sampled_from(ToolStatus)),
    ),
    max_size=12,
).map(tuple)
"""Any sequence of items; the calls of one answer have ids of their own."""

__all__ = ["ITEMS", "Item"]
