"""Rules over exception classes, read only where no status speaks: wrappers choose their classes by status."""

from __future__ import annotations

from dataclasses import replace

from hermes.core.failures import Reason
from hermes.policy.rules import Rule, words
from hermes.policy.rules_weak import no_status

_RULES: tuple[Rule, ...] = (
    Rule(
        "exception_policy",
        Reason.PROVIDER_POLICY_BLOCKED,
        "content",
        exceptions=words("""
            contentfiltererror contentfilterfinishreasonerror
        """),
    ),
    Rule(
        "exception_rate_limit",
        Reason.RATE_LIMIT,
        exceptions=words("""
            ratelimiterror throttlingexception resourceexhausted toomanyrequests ratelimitexception
            toomanyrequestserror
        """),
    ),
    Rule("exception_billing", Reason.BILLING, exceptions=words("paymentrequirederror budgetexceedederror")),
    Rule(
        "exception_auth",
        Reason.AUTH,
        exceptions=words("""
            authenticationerror permissiondeniederror permissiondenied unauthenticated
            accessdeniedexception expiredtokenexception unrecognizedclientexception credentialserror
            identitytokenfileerror claudecodekeycreatornotmembererror refresherror
            invalidsignatureexception oautherror nocredentialserror workloadidentityerror unauthorized
        """),
    ),
    Rule(
        "exception_model",
        Reason.MODEL_NOT_FOUND,
        exceptions=words("notfounderror resourcenotfoundexception notfound"),
    ),
    Rule(
        "exception_overloaded",
        Reason.OVERLOADED,
        exceptions=words("""
            overloadederror serviceunavailableerror serviceunavailableexception serviceunavailable
            modelnotreadyexception
        """),
    ),
    Rule(
        "exception_certificate",
        Reason.TIMEOUT,
        "certificate",
        retryable=False,
        exceptions=words("""
            sslcertverificationerror certificateerror clientconnectorcertificateerror
        """),
    ),
    Rule(
        "exception_timeout",
        Reason.TIMEOUT,
        exceptions=words("""
            apitimeouterror timeoutexception clientclosedrequesterror requesttimeouterror readtimeout
            connecttimeout writetimeout pooltimeout timeout timeouterror deadlineexceeded
            readtimeouterror modeltimeoutexception gatewaytimeout connecttimeouterror sockettimeouterror
            servertimeouterror gatewaytimeouterror deadlineexceedederror
        """),
    ),
    Rule(
        "exception_transport",
        Reason.TIMEOUT,
        "cut",
        exceptions=words("""
            apiconnectionerror transporterror requesterror streamerror websocketconnectionclosederror
            connecterror readerror writeerror remoteprotocolerror protocolerror connectionerror
            connectionreseterror brokenpipeerror incompleteread chunkedencodingerror
            serverdisconnectederror closeerror connectionabortederror connectionrefusederror
            clientpayloaderror clientconnectorerror clientoserror localprotocolerror networkerror
            endofstream incompletereaderror gaierror proxyerror sslerror streamclosed
            connectionclosederror midstreamfallbackerror
        """),
    ),
    Rule(
        "exception_server_error",
        Reason.SERVER_ERROR,
        exceptions=words("""
            internalservererror internalserverexception modelerrorexception modelstreamerrorexception
            conflicterror badgateway internalserver
        """),
    ),
    Rule(
        "exception_bad_answer",
        Reason.SERVER_ERROR,
        "bad_json",
        exceptions=words("""
            jsondecodeerror sseerror apiresponsevalidationerror decodingerror unicodedecodeerror
        """),
    ),
)

EXCEPTION_RULES: tuple[Rule, ...] = tuple(replace(rule, test=no_status) for rule in _RULES)
