"""Identifiers. Rows of one file are integers in order of arrival; what leaves the process is text."""

from __future__ import annotations

from typing import NewType

InboxId = NewType("InboxId", int)
TurnId = NewType("TurnId", int)
DeliveryId = NewType("DeliveryId", int)
MessageSeq = NewType("MessageSeq", int)
SessionId = NewType("SessionId", str)
IntentId = NewType("IntentId", str)
QuestionId = NewType("QuestionId", int)
