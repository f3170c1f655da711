"""Rules for what the wire, exception classes and bare statuses say: true if nothing better is known."""

from __future__ import annotations

import re

from hermes.core.delivery import DeliveryReason, Sent
from hermes.policy.delivery_rule import Rule, any_of, words

_R = DeliveryReason

_SENDS = (
    r"(?:send(?:message|photo|document|audio|video|voice|animation|mediagroup|sticker|chataction)|editmessage\w*|"
    r"chat\.(?:postmessage|update)|files\.upload\w*|/messages\b)"
)
_RESET = (
    r"(?:connection (?:was )?(?:forcibly closed|aborted|reset)|forcibly closed by the remote|"
    r"econnreset|errno 10054|epipe|"
    r"broken pipe|socket hang up|remote end closed|server disconnected)"
)

WIRE: tuple[Rule, ...] = (
    Rule("adapter_no_answer", _R.TIMEOUT_AMBIGUOUS, "no_answer", sent=Sent.MAYBE_SENT, answered=False),
    Rule(
        "dns",
        _R.NETWORK_RETRYABLE,
        "not_sent",
        text=any_of(
            r"getaddrinfo",
            r"enotfound|eai_again",
            r"name or service not known|name resolution",
            r"nodename nor servname",
            r"no address associated",
            r"cannot connect to host",
            r"failed to resolve",
        ),
        exceptions=words("gaierror nameresolutionerror clientconnectordnserror"),
    ),
    Rule(
        "connect",
        _R.NETWORK_RETRYABLE,
        "not_sent",
        text=any_of(
            r"connection refused|econnrefused",
            r"network is unreachable|enetunreach|no route to host|ehostunreach",
            r"connect(?:ion)? (?:etimedout|timed? ?out|timeout)",
            r"connecttimeout(?:error)?",
            r"pool timeout|connection pool.{0,20}(?:exhausted|occupied)",
            r"connecterror",
            r"all connection attempts failed|failed to establish a new connection",
            r"proxy(?:error| connection)",
            r"client is not (?:yet )?(?:ready|connected)",
        ),
        exceptions=words(
            "connecttimeout connecterror connectionrefusederror pooltimeout clientconnectorerror "
            "connectiontimeouterror connecttimeouterror newconnectionerror "
            "clientproxyconnectionerror proxyerror clientconnectorsslerror"
        ),
    ),
    Rule(
        "send_cut",
        _R.TIMEOUT_AMBIGUOUS,
        "cut",
        text=re.compile(rf"\A(?=.*{_SENDS})(?=.*{_RESET})", re.DOTALL),
    ),
    Rule(
        "stale_link",
        _R.NETWORK_RETRYABLE,
        "cut",
        text=any_of(r"\bpong\b.{0,30}\b(?:received|missing|timeout)"),
    ),
    Rule(
        "timeout",
        _R.TIMEOUT_AMBIGUOUS,
        "no_answer",
        text=any_of(
            r"\btimed[ _-]?out\b",
            r"(?:read|write|request|socket|gateway|response)[ -]?time-?d?[ -]?out",
            r"esockettimedout|etimedout",
            r"\btimeout\b.{0,30}\b(?:exceeded|expired|reached|error|of \d+)",
            r"timeout(?:error|exception)?$",
            r"did not respond (?:in|within)",
            r"\baborterror\b|(?:user|operation|request)\b.{0,12}\baborted\b",
        ),
        exceptions=words(
            "timedout readtimeout writetimeout timeouterror serverinterruptedtimeout "
            "readtimeouterror asynctimeouterror sockettimeouterror servertimeouterror "
            "requesttimeout timeout timeoutexception"
        ),
    ),
    Rule("gateway_timeout", _R.TIMEOUT_AMBIGUOUS, "no_answer", statuses=frozenset({408, 504, 524})),
    Rule(
        "reset",
        _R.NETWORK_RETRYABLE,
        "cut",
        text=any_of(
            _RESET,
            r"unexpected eof|eof occurred|incomplete read",
            r"connection (?:closed|lost|error|broken|dropped)|connectionclosed",
            r"(?:websocket|gateway|session)\b.{0,40}\b(?:closed|invalidated|disconnect)",
            r"remoteprotocolerror|readerror|clientoserror|websocketclosure",
            r"fetch failed|network (?:error|request (?:for \S+ )?failed)",
            r"cannot write to closing transport",
            r"zombie|heartbeat",
        ),
        exceptions=words(
            "connectionreseterror serverdisconnectederror remoteprotocolerror readerror "
            "writeerror connectionerror connectionabortederror clientoserror clientpayloaderror "
            "brokenpipeerror incompletereaderror remotedisconnected protocolerror networkerror "
            "clientconnectionerror gatewaynotfound sslerror connectionclosederror "
            "clientconnectionreseterror reconnectwebsocket invalidsession oserror"
        ),
    ),
    Rule(
        "service",
        _R.NETWORK_RETRYABLE,
        "server",
        codes=words(
            "internal_error fatal_error service_unavailable request_timeout team_added_to_org "
            "130000 4000 4001 4002 4003 4005 4006 4007 4009 1000 1001 1006 1011 1012"
        ),
        text=any_of(
            r"bad gateway",
            r"service (?:is )?(?:temporarily )?unavailable",
            r"temporarily (?:unavailable|overloaded)|currently overloaded",
            r"upstream connect error|no healthy upstream",
            r"restart(?:ing)? (?:later|in progress)",
        ),
        exceptions=words("telegramservererror restartingtelegram serverdisconnectederror"),
    ),
)

_GATEWAYS = frozenset({502, 503, *range(520, 531)}) - {524}

GENERIC: tuple[Rule, ...] = (
    Rule("discord_500", _R.UNKNOWN, "server", platform="discord", statuses=frozenset({500})),
    Rule("server", _R.NETWORK_RETRYABLE, "server", statuses=_GATEWAYS | {500}),
    Rule("server_class", _R.NETWORK_RETRYABLE, "server", exceptions=words("discordservererror")),
    Rule("status_401", _R.PERMANENT_AUTH, statuses=frozenset({401})),
    Rule("telegram_404", _R.PERMANENT_AUTH, "token_unknown", platform="telegram", statuses=frozenset({404})),
    Rule("status_403_404", _R.PERMANENT_TARGET, statuses=frozenset({403, 404, 410})),
    Rule("status_409", _R.CONFLICT, statuses=frozenset({409})),
    Rule("status_413", _R.TOO_LONG, statuses=frozenset({413})),
    Rule(
        "unauthorised",
        _R.PERMANENT_AUTH,
        text=any_of(r"^\W*(?:error\W+)?(?:\d+\W+)?unauthori[sz]ed\b"),
        exceptions=words("unauthorized"),
    ),
    Rule(
        "forbidden",
        _R.PERMANENT_TARGET,
        text=any_of(r"^\W*forbidden\b"),
        exceptions=words("forbidden telegramforbiddenerror"),
    ),
    Rule("unknown", _R.UNKNOWN),
)
