"""The sentence a person in the chat reads when recovery gave up."""

from __future__ import annotations

from hermes.core.failures import Verdict


def sentence(verdict: Verdict, *, provider: str = "", model: str = "") -> str:
    """What happened and what to do next; plain, without secrets or raw bodies."""
    return "The model could not answer. Please try again."
