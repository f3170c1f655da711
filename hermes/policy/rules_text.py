"""Rules over anchored sentences, most specific meaning first. The wordings are in `wording*`."""

from __future__ import annotations

import re

from hermes.core.failures import CallContext, Reason
from hermes.policy import wording as say
from hermes.policy import wording_service as service
from hermes.policy.retry_after import parse_waits
from hermes.policy.rules import Rule, any_of
from hermes.policy.signals import Signals

SHORT_WAIT = 3600.0
"""A 402 that asks for at most this many seconds is a throttle, not a bill."""

_TOKENS = any_of(r"\btokens\b")
_GOOGLE = re.compile(r"gemini|google|vertex")
_LIMIT_REQUESTED = re.compile(r"limit:? ?(\d[\d,]*)\b.{0,80}?requested:? ?(\d[\d,]*)", re.S)


def is_google(signals: Signals, _: CallContext) -> bool:
    """Google's quota sentence is OpenAI's billing sentence word for word."""
    return bool(
        _GOOGLE.search(signals.provider)
        or "resource_exhausted" in signals.codes
        or "generativelanguage" in signals.text
        or "ai.google.dev" in signals.urls
    )


def _short_wait(signals: Signals, _: CallContext) -> bool:
    wait = parse_waits(signals.headers, None, signals.text, now=None).retry_after
    return wait is not None and wait <= SHORT_WAIT


def _larger_than_allowance(signals: Signals, _: CallContext) -> bool:
    found = _LIMIT_REQUESTED.search(signals.text)
    if found is None:
        return "request too large" in signals.text
    limit, requested = (int(number.replace(",", "")[:18] or "0") for number in found.groups())
    return requested > limit


def _may_be_service(signals: Signals, _: CallContext) -> bool:
    """Transport and server wording counts only where the status does not already blame the request."""
    return (
        signals.status is None
        or signals.status < 400
        or signals.status >= 500
        or signals.status in {408, 424, 499}
    )


def _blames_the_form(signals: Signals, _: CallContext) -> bool:
    """No status, or one that a malformed request gets."""
    return signals.status is None or signals.status < 400 or signals.status in {400, 404, 409, 415, 422}


def _no_answer(signals: Signals, _: CallContext) -> bool:
    """A completed exchange with an error status is the server's failure, not the connection's."""
    return signals.status is None or signals.status < 400 or signals.status in {408, 499}


def _model_may_be_wrong(signals: Signals, _: CallContext) -> bool:
    """A failing server is believed only when it says that the model does not exist."""
    if signals.status is None or signals.status < 500:
        return True
    return bool(re.search(r"\bnot exist|\bnot found|unknown model|not a valid model", signals.text))


def _not_throttled(signals: Signals, _: CallContext) -> bool:
    return signals.status not in {402, 429, 529}


def _affordable(signals: Signals, _: CallContext) -> bool:
    return "fewer max_tokens" in signals.text


def _pixels(signals: Signals, _: CallContext) -> bool:
    return bool(re.search(r"\b(?:pixels?|dimensions?|resolution|width|height)\b", signals.text))


def _bytes(signals: Signals, _: CallContext) -> bool:
    return bool(re.search(r"(?:\b|\d)(?:bytes|mb|kb|mib)\b", signals.text))


TEXT_RULES: tuple[Rule, ...] = (
    Rule(
        "text_certificate",
        Reason.TIMEOUT,
        "certificate",
        text=service.CERTIFICATE,
        test=_may_be_service,
        retryable=False,
    ),
    Rule("text_thinking_signature", Reason.THINKING_SIGNATURE, text=say.THINKING_SIGNATURE),
    Rule("text_long_context_tier", Reason.LONG_CONTEXT_TIER, text=say.LONG_CONTEXT_TIER),
    Rule("text_long_context_beta", Reason.OAUTH_LONG_CONTEXT_BETA_FORBIDDEN, text=say.LONG_CONTEXT_BETA),
    Rule(
        "text_grammar",
        Reason.LLAMA_CPP_GRAMMAR_PATTERN,
        text=say.GRAMMAR,
        unless=any_of(r"raise_exception|jinja exception"),
    ),
    Rule("text_region", Reason.PROVIDER_POLICY_BLOCKED, "region", text=say.REGION),
    Rule("text_data_policy", Reason.PROVIDER_POLICY_BLOCKED, "data_policy", text=say.DATA_POLICY),
    Rule("text_in_flight", Reason.RATE_LIMIT, "in_flight", statuses=frozenset({402}), test=_short_wait),
    Rule(
        "text_google_no_free_tier",
        Reason.BILLING,
        "no_free_tier",
        text=any_of(r"limit: 0(?![.\d])"),
        test=is_google,
    ),
    Rule("text_google_quota", Reason.RATE_LIMIT, "quota", text=say.QUOTA_SENTENCE, test=is_google),
    Rule(
        "text_affordable", Reason.BILLING, "affordable", text=any_of(r"can only afford \d+"), test=_affordable
    ),
    Rule("text_billing_quota", Reason.BILLING, text=say.QUOTA_SENTENCE),
    Rule("text_billing", Reason.BILLING, text=say.BILLING, unless=any_of(r"request too large for model")),
    Rule("text_credential_forbidden", Reason.AUTH_PERMANENT, "credential", text=say.CREDENTIAL_FORBIDDEN),
    Rule("text_account_disabled", Reason.AUTH_PERMANENT, "account", text=say.ACCOUNT_DISABLED),
    Rule("text_content", Reason.PROVIDER_POLICY_BLOCKED, "content", text=say.CONTENT),
    Rule(
        "text_edge_block",
        Reason.PROVIDER_POLICY_BLOCKED,
        "edge",
        text=say.EDGE_BLOCK,
        test=lambda s, _: s.status in {403, 503, None} or s.html,
    ),
    Rule("text_tool_images", Reason.FORMAT_ERROR, "tool_images", text=service.TOOL_IMAGES),
    Rule("text_no_images", Reason.FORMAT_ERROR, "images", text=service.NO_IMAGES),
    Rule("text_bad_image", Reason.FORMAT_ERROR, "bad_image", text=service.BAD_IMAGE, test=_blames_the_form),
    Rule(
        "text_image_count",
        Reason.FORMAT_ERROR,
        "image_count",
        text=service.IMAGE_COUNT,
        test=_blames_the_form,
    ),
    Rule("text_format_strict", Reason.FORMAT_ERROR, text=service.FORMAT_STRICT),
    Rule(
        "text_request_over_allowance",
        Reason.CONTEXT_OVERFLOW,
        "allowance",
        text=any_of(r"tokens? per (?:min|day|hour)", r"\b(?:tpm|tpd)\b"),
        test=_larger_than_allowance,
    ),
    Rule("text_per_time", Reason.RATE_LIMIT, "throttle", text=service.PER_TIME),
    Rule("text_memory_guard", Reason.OVERLOADED, "memory", text=service.MEMORY),
    Rule(
        "text_output_cap",
        Reason.FORMAT_ERROR,
        "output_cap",
        text=say.OUTPUT_CAP,
        unless=say.INPUT_PLUS_OUTPUT,
    ),
    Rule("text_input_plus_output", Reason.CONTEXT_OVERFLOW, "output_cap", text=say.INPUT_PLUS_OUTPUT),
    Rule("text_image_pixels", Reason.IMAGE_TOO_LARGE, "pixels", text=say.IMAGE, unless=_TOKENS, test=_pixels),
    Rule("text_image_bytes", Reason.IMAGE_TOO_LARGE, "bytes", text=say.IMAGE, unless=_TOKENS, test=_bytes),
    Rule("text_image", Reason.IMAGE_TOO_LARGE, text=say.IMAGE, unless=_TOKENS),
    Rule("text_overflow", Reason.CONTEXT_OVERFLOW, text=say.OVERFLOW),
    Rule("text_payload", Reason.PAYLOAD_TOO_LARGE, text=say.PAYLOAD),
    Rule(
        "text_loading",
        Reason.OVERLOADED,
        "loading",
        text=service.LOADING,
        unless=any_of(r"failed to load|loading (?:was |has )?(?:stopped|failed|aborted)"),
    ),
    Rule("text_capacity", Reason.OVERLOADED, text=service.CAPACITY),
    Rule(
        "text_upstream_throttle",
        Reason.RATE_LIMIT,
        "upstream",
        text=any_of(
            r"rate[- ]?limited upstream",
            r"upstream_provider_shared_pool",
            r"upstream[^\n.]{0,30}rate[- ]?limit",
        ),
    ),
    Rule(
        "text_model",
        Reason.MODEL_NOT_FOUND,
        text=service.MODEL,
        test=_model_may_be_wrong,
        unless=any_of(r"permission[^\n]{0,60}denied on resource"),
    ),
    Rule(
        "text_channel",
        Reason.MODEL_NOT_FOUND,
        "channel",
        text=any_of(r"no available channel for model", "无可用渠道"),
    ),
    Rule("text_usage_window", Reason.RATE_LIMIT, "window", text=service.USAGE_WINDOW),
    Rule("text_throttle", Reason.RATE_LIMIT, "throttle", text=service.THROTTLE),
    Rule("text_auth", Reason.AUTH, text=service.AUTH, test=_not_throttled),
    Rule("text_timed_out", Reason.TIMEOUT, text=service.TIMED_OUT, test=_may_be_service),
    Rule("text_server", Reason.SERVER_ERROR, text=service.SERVER, test=_may_be_service),
    Rule(
        "text_crashed",
        Reason.SERVER_ERROR,
        statuses=frozenset({400, 409, 422, 424}),
        text=any_of(r"\b(?:model|runner|engine|worker|backend|server)\b[^\n]{0,30}\bcrashed"),
    ),
    Rule("text_transport", Reason.TIMEOUT, "cut", text=service.LOCAL_TRANSPORT, test=_no_answer),
    Rule("text_format", Reason.FORMAT_ERROR, text=service.FORMAT, test=_blames_the_form, vacuous=False),
)
