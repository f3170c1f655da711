"""The sentence a person in the chat reads when recovery gave up: what happened and what to do next.

Plain words, no secret, no raw body; numbers only where the error stated them.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from hermes.core.failures import Reason, Verdict

_R = Reason

SENTENCES: Mapping[tuple[Reason, str | None], str] = MappingProxyType(
    {
        (_R.AUTH, None): "{Who} refused the credential: it is wrong, expired or lacks a permission. "
        "Ask the owner to renew the key or sign in again.",
        (
            _R.AUTH,
            "proxy",
        ): "The network proxy in front of {who} wants a login. Ask the owner to set the proxy's credentials.",
        (_R.AUTH_PERMANENT, None): "{Who} does not accept this credential at all. "
        "The owner has to settle that with the provider or configure another key.",
        (_R.AUTH_PERMANENT, "account"): "The account at {who} is disabled or suspended. "
        "The owner has to settle that with the provider or configure another one.",
        (_R.BILLING, None): "The account at {who} has no credit left or has reached its spending limit. "
        "Ask the owner to top it up or to raise the limit.",
        (_R.BILLING, "affordable"): "The credit left at {who} is too small for an answer of this length. "
        "Ask the owner to top it up.",
        (_R.BILLING, "no_free_tier"): "{Who} does not offer {model} on the free tier. "
        "Ask the owner to enable billing or choose another model with /model.",
        (_R.RATE_LIMIT, None): "{Who} is limiting how often it may be asked.{wait}",
        (_R.RATE_LIMIT, "window"): "The usage limit at {who} is used up for now.{wait}",
        (_R.OVERLOADED, None): "{Who} is overloaded at the moment.{wait}",
        (_R.OVERLOADED, "loading"): "{Model} is still being loaded.{wait}",
        (_R.OVERLOADED, "memory"): "The machine that runs {model} is short of memory.{wait}",
        (
            _R.SERVER_ERROR,
            None,
        ): "{Who} had an internal error several times in a row. Please try again in a few minutes.",
        (
            _R.SERVER_ERROR,
            "wrong_type",
        ): "{Who} answered with something that is no model answer (a web page, perhaps from "
        "a proxy). Ask the owner to check the provider's base_url.",
        (_R.TIMEOUT, None): "{Who} did not answer in time. Please try again in a few minutes.",
        (
            _R.TIMEOUT,
            "certificate",
        ): "The secure connection to {who} cannot be trusted: its certificate was refused. "
        "Ask the owner to check the certificate, the clock or the proxy.",
        (_R.TIMEOUT, "refused"): "{Who} is not reachable: the connection was refused. "
        "Ask the owner whether the server runs and the base_url is right.",
        (_R.TIMEOUT, "dns"): "The address of {who} cannot be found. "
        "Ask the owner to check the network and the provider's base_url.",
        (_R.TIMEOUT, "cut"): "The connection to {who} broke in the middle of the answer, again and again. "
        "Please try again in a few minutes.",
        (
            _R.TIMEOUT,
            "stalled",
        ): "{Who} began to answer and then fell silent. Please try again in a few minutes.",
        (_R.CONTEXT_OVERFLOW, None): "This conversation is too long for the window of {model}{numbers}. "
        "Shorten the message, or start afresh with /new.",
        (
            _R.CONTEXT_OVERFLOW,
            "allowance",
        ): "This request is larger than {who} accepts within one minute on this "
        "plan{numbers}. Shorten the message, or start afresh with /new.",
        (
            _R.CONTEXT_OVERFLOW,
            "output_cap",
        ): "The conversation leaves too little room for an answer in the window of "
        "{model}. Shorten the message, or start afresh with /new.",
        (_R.PAYLOAD_TOO_LARGE, None): "The message with its attachments is too large for {who}. "
        "Send less at once, or start afresh with /new.",
        (_R.IMAGE_TOO_LARGE, None): "An image is too large for {model}{image}. Please send a smaller one.",
        (
            _R.MODEL_NOT_FOUND,
            None,
        ): "{Who} does not offer {model} to this account. Choose another model with /model.",
        (_R.MODEL_NOT_FOUND, "endpoint"): "{Who} does not know the address that was called. "
        "Ask the owner to check the provider's base_url and the model's name.",
        (_R.PROVIDER_POLICY_BLOCKED, None): "{Who} refused this request by its own rules. "
        "Rephrase it, or choose another model with /model.",
        (_R.PROVIDER_POLICY_BLOCKED, "region"): "{Who} does not serve the region this gateway runs in. "
        "Choose another provider with /model.",
        (_R.PROVIDER_POLICY_BLOCKED, "data_policy"): "The privacy settings at {who} leave no one to answer. "
        "Ask the owner to change them, or choose another model with /model.",
        (_R.PROVIDER_POLICY_BLOCKED, "edge"): "A protection in front of {who} blocked the request. "
        "Ask the owner to check the network or choose another provider.",
        (_R.FORMAT_ERROR, None): "{Who} did not accept the form of the request. Start afresh with /new; "
        "if it happens again, tell the owner (the trace has the details).",
        (_R.FORMAT_ERROR, "output_cap"): "The configured answer length is more than {model} allows{numbers}. "
        "Ask the owner to lower max_output.",
        (
            _R.FORMAT_ERROR,
            "images",
        ): "{Model} cannot read images. Send text, or choose another model with /model.",
        (
            _R.FORMAT_ERROR,
            "bad_image",
        ): "{Model} cannot read one of the pictures. Please send it again as JPEG or PNG.",
        (
            _R.THINKING_SIGNATURE,
            None,
        ): "{Who} no longer accepts an earlier thinking step of this conversation. Start afresh with /new.",
        (_R.LONG_CONTEXT_TIER, None): "This account at {who} may not use the long context. "
        "Shorten the conversation with /compress, or start afresh with /new.",
        (
            _R.OAUTH_LONG_CONTEXT_BETA_FORBIDDEN,
            None,
        ): "This sign-in at {who} may not use the long-context beta. Ask the owner to switch it off.",
        (_R.LLAMA_CPP_GRAMMAR_PATTERN, None): "{Who} cannot work with the schema of one of the tools. "
        "Ask the owner to simplify it or choose another model.",
        (_R.UNKNOWN, None): "{Who} failed in a way that is not known here. Please try again; "
        "if it happens again, tell the owner (the trace has the details).",
        (
            _R.UNKNOWN,
            "empty_answer",
        ): "{Model} gave an empty answer several times. Rephrase the message or try again.",
        (
            _R.UNKNOWN,
            "truncated_answer",
        ): "The answer of {model} was cut off at its length limit. Ask for a shorter one.",
        (
            _R.UNKNOWN,
            "truncated_tool_call",
        ): "{Model} stopped in the middle of a tool call, which was not run. Please try again.",
    }
)
"""One sentence for each (reason, detail) that needs its own; a detail without one has its reason's."""

DEADLINE = "{Who} could not answer within the time set for one turn. Please try again."


def sentence(verdict: Verdict, *, provider: str = "", model: str = "", key: str | None = None) -> str:
    """What happened and what to do next. `key` is `GiveUp.sentence_key`; names are those of the
    configuration."""
    template = SENTENCES.get((verdict.reason, verdict.detail), SENTENCES[verdict.reason, None])
    if key == "deadline":
        template = DEADLINE
    who = f"the provider {provider}" if provider else "the model's provider"
    what = f"the model {model}" if model else "the model"
    return template.format(
        who=who,
        Who=_capital(who),
        model=what,
        Model=_capital(what),
        wait=_wait(verdict),
        numbers=_numbers(verdict),
        image=_image(verdict),
    )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _wait(verdict: Verdict) -> str:
    if verdict.retry_after is None:
        return " Please try again in a few minutes."
    return f" Please try again in {duration(verdict.retry_after)}."


def duration(seconds: float) -> str:
    """A wait for people, rounded up: `40 seconds`, `5 minutes`, `3 hours`, `2 days`."""
    for size, name in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if seconds >= 1.5 * size or (seconds >= size and seconds % size == 0):
            count = int(-(-seconds // size))
            return f"{count} {name}{'s' if count != 1 else ''}"
    count = max(1, int(-(-seconds // 1)))
    return f"{count} second{'s' if count != 1 else ''}"


def _numbers(verdict: Verdict) -> str:
    if verdict.limit is None:
        return ""
    if verdict.requested is None:
        return f" ({verdict.limit:,} tokens)"
    return f" ({verdict.requested:,} tokens, {verdict.limit:,} allowed)"


def _image(verdict: Verdict) -> str:
    if verdict.limit is None or verdict.limit < 10:
        return ""
    return f" (limit {verdict.limit:,} {'bytes' if verdict.detail == 'bytes' else 'pixels'})"
