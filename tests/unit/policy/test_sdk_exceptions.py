"""Each exception class of the installed SDKs has a meaning of its own; a new one makes these tests fail."""

from __future__ import annotations

import importlib

import pytest

from hermes.core.failures import Reason
from hermes.policy.classify import classify, facts_from_record

MEANINGS: dict[str, dict[Reason, str]] = {
    "openai": {
        Reason.TIMEOUT: """
            APIConnectionError APITimeoutError WebSocketConnectionClosedError
        """,
        Reason.UNKNOWN: """
            APIError APIStatusError BadRequestError InvalidWebhookSignatureError LengthFinishReasonError
            OpenAIError UnprocessableEntityError WebSocketQueueFullError
        """,
        Reason.SERVER_ERROR: """
            APIResponseValidationError ConflictError InternalServerError
        """,
        Reason.AUTH: """
            AuthenticationError OAuthError PermissionDeniedError
        """,
        Reason.PROVIDER_POLICY_BLOCKED: """
            ContentFilterFinishReasonError
        """,
        Reason.MODEL_NOT_FOUND: """
            NotFoundError
        """,
        Reason.RATE_LIMIT: """
            RateLimitError
        """,
        Reason.FORMAT_ERROR: """
            _AmbiguousModuleClientUsageError
        """,
    },
    "anthropic": {
        Reason.TIMEOUT: """
            APIConnectionError APITimeoutError ClientClosedRequestError DeadlineExceededError
            GatewayTimeoutError RequestTimeoutError
        """,
        Reason.UNKNOWN: """
            APIError APIStatusError APIWebhookValidationError AnthropicError BadRequestError
            CMEKContextUnavailableError CMEKKeyDisabledError CMEKKeyNetworkBlockedError
            CMEKKeyUnreachableError RetryableError SandboxEgressRestrictedError UnprocessableEntityError
            WorkspaceHumanReviewDisabledError
        """,
        Reason.SERVER_ERROR: """
            APIResponseValidationError ConflictError InternalServerError
        """,
        Reason.AUTH: """
            AuthenticationError ClaudeCodeKeyCreatorNotMemberError CredentialsError
            IdentityTokenFileError PermissionDeniedError WorkloadIdentityError
        """,
        Reason.FORMAT_ERROR: """
            ClaudeCodeVersionTooOldError HTTPNotImplementedError PreconditionFailedError
            RequestBodyEncodingInvalidError RequestBodyEncodingUnsupportedError
            RequestHeaderFieldsTooLargeError
        """,
        Reason.PAYLOAD_TOO_LARGE: """
            ContentTooLargeError RequestBodyTooLargeAfterDecodingError RequestTooLargeError
        """,
        Reason.BILLING: """
            ContractSpendLimitReachedError EnforcedSpendLimitReachedError
            LinkedOrganizationBillingUnavailableError LinkedOrganizationSpendLimitReachedError
            PaymentRequiredError
        """,
        Reason.MODEL_NOT_FOUND: """
            NotFoundError
        """,
        Reason.AUTH_PERMANENT: """
            OrganizationOnHoldError OrganizationTypeNotSupportedError ParentOrganizationRequiredError
        """,
        Reason.OVERLOADED: """
            OverloadedError ServiceUnavailableError
        """,
        Reason.RATE_LIMIT: """
            RampLimitExceededError RateLimitError
        """,
    },
    "httpx2": {
        Reason.TIMEOUT: """
            CloseError ConnectError ConnectTimeout LocalProtocolError NetworkError PoolTimeout
            ProtocolError ProxyError ReadError ReadTimeout RemoteProtocolError RequestError StreamClosed
            StreamError TimeoutException TransportError WriteError WriteTimeout
        """,
        Reason.FORMAT_ERROR: """
            CookieConflict InvalidURL TooManyRedirects UnsupportedProtocol
        """,
        Reason.SERVER_ERROR: """
            DecodingError SSEError
        """,
        Reason.UNKNOWN: """
            HTTPError HTTPStatusError RequestNotRead ResponseNotRead StreamConsumed
        """,
    },
}
"""What a class alone means, without status and body. Unknown: base classes and those that need their body."""


def exceptions_of(module: str) -> dict[str, type[Exception]]:
    sdk = importlib.import_module(module)
    found = {name: getattr(sdk, name) for name in dir(sdk)}
    return {name: c for name, c in found.items() if isinstance(c, type) and issubclass(c, Exception)}


@pytest.mark.parametrize("module", list(MEANINGS))
def test_every_exception_class_of_the_sdk_is_listed(module: str) -> None:
    listed = {name for names in MEANINGS[module].values() for name in names.split()}
    assert listed == set(exceptions_of(module))


@pytest.mark.parametrize("module", list(MEANINGS))
def test_every_exception_class_of_the_sdk_is_read_as_listed(module: str) -> None:
    classes = exceptions_of(module)
    for reason, names in MEANINGS[module].items():
        for name in names.split():
            dotted = f"{classes[name].__module__}.{classes[name].__qualname__}"
            assert classify(*facts_from_record({"exception": dotted})).reason is reason, name
