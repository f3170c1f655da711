"""What is true when nothing more exact is known: generic codes, statuses, exception classes, our own
kinds."""

from __future__ import annotations

from hermes.core.failures import CallContext, FaultKind, Reason
from hermes.policy.rules import Rule, any_of, codes, words
from hermes.policy.rules_exceptions import EXCEPTION_RULES
from hermes.policy.rules_weak import STATUS_WEAK_RULES, WEAK_RULES
from hermes.policy.signals import Signals

NEAR_WINDOW = 0.9
"""A refusal without a reason is read as an overflow only when the measured prompt fills this share of the
window."""


def near_window(_: Signals, context: CallContext) -> bool:
    """Whether the prompt we sent nearly fills the model's window, by count."""
    window, prompt = context.context_window, context.prompt_tokens
    return window is not None and prompt is not None and window > 0 and prompt >= NEAR_WINDOW * window


def _says_model(signals: Signals, _: CallContext) -> bool:
    return signals.param == "model" or "model" in signals.text


def _statuses(*statuses: int) -> frozenset[int]:
    return frozenset(statuses)


_FORMAT_CODES = codes("""
            invalid_request_error invalid_argument validationexception badrequest(?:error)? bad_request
            invalid_parameter.* invalidparameter.* unsupported_value unsupported_parameter
            unknown_parameter invalid_value missing_required_parameter invalid_type invalid_request
            validation_error invalid_function_parameters invalid_json_schema failed_precondition
            invalid_image_url invalid_image invalid_request_body unprocessable_entity
            string_above_max_length array_above_max_length unsupported_content_type bad_request_error
            invalid_prompt invalid_base64 not_supported_error tool_use_failed json_validate_failed
        """)

GENERIC_RULES: tuple[Rule, ...] = (
    *STATUS_WEAK_RULES,
    Rule("status_401", Reason.AUTH, statuses=_statuses(401)),
    Rule("status_402", Reason.BILLING, statuses=_statuses(402)),
    Rule("status_413", Reason.PAYLOAD_TOO_LARGE, statuses=_statuses(413)),
    Rule(
        "generic_rate_limit",
        Reason.RATE_LIMIT,
        codes=codes(r"""
            rate_limit_error ramp_limit_exceeded rate_limit_exceeded rate_limited
            rate_limit_reached_error rate[-_]?limit.* throttling.* too_many_requests.* toomanyrequests.*
            resource_exhausted throttled limit_(?:requests|burst_rate|tokens) 1302 1303
            concurrency_limit.* user_rate_limited quota_exceeded tokens_per_\w+_exceeded .*\.429
            ratelimitreached servicequotaexceededexception user_global_rate_limited.*
            freeusagelimiterror
        """),
        test=lambda s, _: (
            s.status is None or s.status in {200, 400, 403, 408, 409, 425, 429} or s.status >= 500
        ),
    ),
    Rule("status_429", Reason.RATE_LIMIT, statuses=_statuses(425, 429)),
    Rule("status_403", Reason.AUTH, statuses=_statuses(403)),
    Rule("status_404", Reason.MODEL_NOT_FOUND, statuses=_statuses(404, 410), test=_says_model),
    Rule("status_404_endpoint", Reason.MODEL_NOT_FOUND, "endpoint", statuses=_statuses(404, 410)),
    Rule("status_timeout", Reason.TIMEOUT, statuses=_statuses(408, 499, 504, 522, 523, 524, 598, 599)),
    Rule("status_overloaded", Reason.OVERLOADED, statuses=_statuses(498, 503, 529)),
    Rule(
        "status_certificate",
        Reason.TIMEOUT,
        "certificate",
        statuses=_statuses(495, 525, 526),
        retryable=False,
    ),
    Rule("status_not_offered", Reason.FORMAT_ERROR, statuses=_statuses(405, 406, 415, 501, 505)),
    Rule(
        "generic_timeout",
        Reason.TIMEOUT,
        codes=codes("""
            timeout_error timeout request_timeout gateway_timeout deadline_exceeded upstream_timeout
            modeltimeoutexception requesttimeout timed_out stream_timeout
        """),
    ),
    Rule(
        "generic_overloaded",
        Reason.OVERLOADED,
        codes=codes("""
            unavailable service_unavailable(?:_error)? serviceunavailable(?:exception|error)?
            unavailable_error
        """),
    ),
    Rule(
        "status_server_error", Reason.SERVER_ERROR, test=lambda s, _: s.status is not None and s.status >= 500
    ),
    Rule(
        "generic_server_error",
        Reason.SERVER_ERROR,
        codes=codes("""
            server_error internal_?server_?error internal_error internal internalerror
            internalserverexception internalfailure bad_gateway modelerrorexception
            modelstreamerrorexception upstream_error server_exception
        """),
        test=lambda s, _: s.status is None or s.status < 400,
    ),
    Rule(
        "generic_auth",
        Reason.AUTH,
        codes=codes("""
            authentication_error permission_error permission_denied accessdenied(?:exception)?
            unauthorized forbidden auth_error invalid_authentication access_denied authenticationerror
            authorization_error
        """),
    ),
    Rule(
        "generic_not_found",
        Reason.MODEL_NOT_FOUND,
        codes=codes("not_found_error not_found resourcenotfoundexception"),
    ),
    Rule(
        "measured_overflow",
        Reason.CONTEXT_OVERFLOW,
        "measured",
        statuses=_statuses(400, 413, 422),
        vacuous=True,
        test=near_window,
    ),
    Rule("status_conflict", Reason.SERVER_ERROR, "conflict", statuses=_statuses(409)),
    Rule(
        "named_field",
        Reason.FORMAT_ERROR,
        statuses=_statuses(400, 422),
        codes=codes(r"(?:invalid|unsupported|missing)_(?!(?:request|argument|parameter|value)\b)\w+"),
        vacuous=True,
        test=lambda s, _: bool(s.param),
    ),
    Rule("refused_without_reason", Reason.UNKNOWN, "no_reason", statuses=_statuses(400, 422), vacuous=True),
    *EXCEPTION_RULES,
    *WEAK_RULES,
    Rule("generic_format", Reason.FORMAT_ERROR, codes=_FORMAT_CODES, vacuous=False),
    Rule("status_format", Reason.FORMAT_ERROR, statuses=_statuses(400, 422)),
    Rule(
        "exception_format",
        Reason.FORMAT_ERROR,
        vacuous=False,
        exceptions=words("""
            badrequesterror unprocessableentityerror invalidrequesterror invalidargument
            validationexception validationerror unprocessableentity badrequest
        """),
    ),
    Rule(
        "exception_local",
        Reason.FORMAT_ERROR,
        "refused_locally",
        exceptions=words("""
            invalidurl unsupportedprotocol mutuallyexclusiveautherror _ambiguousmoduleclientusageerror
            cookieconflict httpnotimplementederror toomanyredirects requestbodyencodinginvaliderror
            requestbodyencodingunsupportederror requestheaderfieldstoolargeerror preconditionfailederror
            claudecodeversiontooolderror
        """),
    ),
    Rule("kind_wrong_type", Reason.SERVER_ERROR, "wrong_type", kinds=frozenset({FaultKind.WRONG_TYPE})),
    Rule(
        "kind_request_invalid",
        Reason.FORMAT_ERROR,
        "refused_locally",
        kinds=frozenset({FaultKind.REQUEST_INVALID}),
    ),
    Rule("kind_unmapped", Reason.UNKNOWN, "unmapped", kinds=frozenset({FaultKind.UNMAPPED})),
    Rule(
        "kind_error_event",
        Reason.SERVER_ERROR,
        "error_event",
        kinds=frozenset({FaultKind.ERROR_EVENT}),
        text=any_of(r"\S"),
    ),
    Rule("nothing_known", Reason.UNKNOWN),
)
"""`nothing_known` matches everything: the table is total."""
