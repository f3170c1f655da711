"""What a platform's refusal means: signals read from the facts, and one ordered table of named rules.

Order: what our side of the wire saw; the sentences and codes that each platform documents (the narrower
first: "too long" before "bad form"); what exceptions and statuses say when nothing better is known. A status
or an exception class alone is weak: python-telegram-bot's old ``Unauthorized`` also meant "blocked by the
user", and Slack refuses with a 200.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from hermes.core.delivery import DeliveryReason, Sent
from hermes.policy.delivery_signals import Signals

_R = DeliveryReason


@dataclass(frozen=True, slots=True)
class Rule:
    """Matches when one of its codes, texts or exceptions does, and its platform, status and sent-state do."""

    name: str
    reason: DeliveryReason
    detail: str | None = None
    codes: frozenset[str] = frozenset()
    text: re.Pattern[str] | None = None
    exceptions: frozenset[str] = frozenset()
    platform: str | None = None
    statuses: frozenset[int] | None = None
    sent: Sent | None = None
    answered: bool | None = None

    def matches(self, signals: Signals) -> bool:
        """Whether this rule applies, its place in the table aside."""
        if self.platform is not None and not signals.platform.startswith(self.platform):
            return False
        if self.statuses is not None and signals.status not in self.statuses:
            return False
        if self.sent is not None and signals.sent is not self.sent:
            return False
        if self.answered is not None and self.answered is not (signals.status is not None):
            return False
        if not (self.codes or self.text or self.exceptions):
            return True
        return (
            bool(self.codes & signals.codes)
            or (self.text is not None and self.text.search(signals.text) is not None)
            or bool(self.exceptions & signals.exceptions)
        )


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{p})" for p in patterns), re.MULTILINE)


OWN_SIDE: tuple[Rule, ...] = (
    Rule(
        "certificate",
        _R.FATAL_CONFIG,
        "certificate",
        text=_any(
            r"certificate[ _]verify[ _]failed",
            r"self[- ]signed certificate",
            r"unable to (?:get|verify).{0,30}certificate",
            r"certificate has expired",
        ),
        exceptions=_words("clientconnectorcertificateerror sslcertverificationerror"),
    ),
    Rule("adapter_not_sent", _R.NETWORK_RETRYABLE, "not_sent", sent=Sent.NOT_SENT),
)

SPECIFIC: tuple[Rule, ...] = (
    Rule(
        "not_modified",
        _R.UNKNOWN,
        "not_modified",
        text=_any(r"message (?:is )?not modified", r"message_not_modified"),
    ),
    Rule(
        "conflict",
        _R.CONFLICT,
        codes=_words("too_many_websockets 40060"),
        text=_any(
            r"terminated by other (?:getupdates|long poll)",
            r"getupdates method while webhook is (?:active|set)",
            r"only one bot instance",
            r"too many (?:web)?sockets",
        ),
        exceptions=_words("conflict telegramconflicterror"),
    ),
    Rule(
        "too_long",
        _R.TOO_LONG,
        codes=_words(
            "40005 msg_too_long msg_blocks_too_long too_many_attachments file_too_large "
            "too_many_blocks base_type_max_length max_embed_size_exceeded message_too_long "
            "media_caption_too_long entities_too_long list_item_too_long 30015"
        ),
        text=_any(
            r"(?:message|text|caption|content|msg)\b.{0,20}\btoo (?:long|large|big)",
            r"or fewer in length",
            r"between \d+ and \d+ in length",
            r"must be (?:less|shorter|fewer|no more) than \d+ (?:characters|items)",
            r"(?:no more|not more) than \d+ (?:characters|items)",
            r"at most \d+ characters",
            r"request entity too large|payload too large|content too large",
            r"file is too (?:big|large)",
            r"exceeds? (?:the )?(?:maximum|max)\b.{0,30}\b(?:size|length|characters)",
            r"too many characters",
            r"(?:file|attachment|upload)s?\b.{0,30}\bexceeds?\b",
            r"embed size exceeds",
        ),
        exceptions=_words("messagetoolong telegramentitytoolarge messageistoolong"),
    ),
    Rule(
        "flood",
        _R.FLOOD_WAIT,
        codes=_words(
            "ratelimited rate_limited rate_limit_exceeded message_limit_exceeded 40062 20016 "
            "20022 20028 20029 31001 31002 30046 4008"
        ),
        text=_any(
            r"flood[ _](?:control|wait)",
            r"slowmode[ _]wait|slow ?mode rate limit",
            r"too many requests",
            r"rate[- ]?limit(?:ed| was exceeded| exceeded|ing)\b",
            r"retry after \d",
            r"error code: 1015\b",
            r"session start limit|sessions? remaining",
        ),
        exceptions=_words(
            "retryafter telegramretryafter floodwait ratelimited floodwaiterror ratelimiterror floodcontrol"
        ),
    ),
    Rule("flood_status", _R.FLOOD_WAIT, statuses=frozenset({429})),
    Rule(
        "config",
        _R.FATAL_CONFIG,
        codes=_words(
            "missing_scope not_allowed_token_type no_permission link_disabled 4010 4011 4012 "
            "4013 4014 unknown_method method_deprecated deprecated_endpoint "
            "app_missing_action_url invalid_scope method_not_supported_for_channel_type_token "
            "missing_charset_token disallowed_intents enterprise_is_restricted app_not_installed "
            "invalid_app_id socket_mode_disabled 20012"
        ),
        text=_any(
            r"(?:disallowed|privileged|invalid) (?:gateway )?intents?",
            r"shard(?:ing)? (?:is )?required|requires sharding",
            r"must provide .{0,40}token",
            r"token (?:is |was )?(?:not provided|missing|required|undefined|empty|not set)",
            r"no (?:bot |app |api )?token (?:was )?(?:provided|given|set|found)|missing (?:bot |app |api )?token",
            r"(?:you must|must) pass (?:the|a)\b.{0,20}token",
            r"socket mode (?:is )?(?:not enabled|not turned on|disabled)",
            r"bad webhook",
            r"webhook can be set up only",
            r"https url must be provided for webhook",
            r"expected token to be set",
            r"invalid (?:api )?version specified",
        ),
        exceptions=_words("privilegedintentsrequired appinitializationerror boltconfigurationerror"),
    ),
    Rule(
        "auth",
        _R.PERMANENT_AUTH,
        codes=_words(
            "invalid_auth not_authed account_inactive token_revoked token_expired invalid_token "
            "org_login_required ekm_access_denied two_factor_setup_required "
            "team_access_not_granted 40001 50014 50025 4004 40002 token_invalid tokeninvalid "
            "bot_invalid invalid_refresh_token user_removed_from_team"
        ),
        text=_any(
            r"improper token",
            r"invalid (?:bot |auth\w* |api )?token",
            r"token\b.{0,60}\b(?:rejected|revoked|expired|invalid)\b",
            r"authentication failed",
            r"incorrect login",
            r"\blogged out\b",
            r"api token is (?:invalid|incorrect)",
        ),
        exceptions=_words(
            "invalidtoken loginfailure tokenvalidationerror tokeninvalid telegramunauthorizederror"
        ),
    ),
    Rule(
        "migrated",
        _R.PERMANENT_TARGET,
        "migrated",
        text=_any(
            r"migrated to (?:a )?supergroup",
            r"upgraded to (?:a )?supergroup",
            r"group migrated",
            r"chat migrated",
        ),
        exceptions=_words("chatmigrated telegrammigratetochat migratetochat"),
    ),
    Rule(
        "message_gone",
        _R.PERMANENT_TARGET,
        "message_gone",
        codes=_words("10008 message_not_found"),
        text=_any(
            r"message to (?:delete|edit|react\w*|pin|forward|copy) not found",
            r"unknown message\b",
            r"message_id_invalid",
        ),
    ),
)

TARGET_CODES = _words(
    "10003 10004 10013 10014 10015 10062 50001 50005 50007 50008 50009 50013 50024 50055 "
    "50083 50278 160005 channel_not_found not_in_channel is_archived thread_not_found "
    "user_not_found users_not_found cant_update_message cant_delete_message cant_edit "
    "edit_window_closed restricted_action restricted_action_read_only_channel "
    "restricted_action_thread_only_channel restricted_action_non_threadable_channel "
    "restricted_action_thread_locked cannot_dm_bot user_disabled user_not_visible "
    "user_is_restricted user_is_bot messages_tab_disabled team_not_found "
    "channel_is_archived channel_is_limited_access im_disabled not_found is_inactive "
    "cannot_reply_to_message user_not_in_channel already_archived access_denied "
    "chat_admin_required chat_write_forbidden chat_restricted chat_send_plain_forbidden "
    "chat_send_media_forbidden chat_forbidden user_is_blocked user_deactivated "
    "peer_id_invalid user_id_invalid chat_id_invalid topic_closed topic_deleted "
    "topic_id_invalid channel_private channel_invalid message_author_required "
    "input_user_deactivated user_banned_in_channel bot_group_blocked"
)
TARGET_TEXT = _any(
    r"\b(?:chat|channel|user|group|thread|topic|member|peer|recipient|guild|webhook|interaction) (?:was |is )?(?:not found|not exist|deleted|deactivated|archived|closed)",
    r"unknown (?:channel|guild|user|interaction|webhook|thread|member)",
    r"message thread not found",
    r"bot (?:was|is|has been) (?:blocked|kicked|banned|removed|not a (?:member|participant))",
    r"blocked by (?:the )?user",
    r"bot can'?t (?:initiate|send messages? to)",
    r"(?:not enough|have no|need administrator|no) rights",
    r"missing (?:access|permissions?)",
    r"cannot send messages? (?:to|in)",
    r"can'?t send messages? to",
    r"user is deactivated",
    r"(?:message to )?(?:be )?repl(?:y|ied)(?: to)?(?: message)? not found",
    r"message can'?t be (?:edited|deleted|forwarded|copied)",
    r"chat_id is (?:empty|invalid)",
    r"chat_? ?id (?:is )?(?:empty|invalid)",
    r"query is too old|query id is invalid",
    r"(?:group|supergroup|channel) (?:chat )?(?:is|was) (?:deactivated|deleted)",
    r"cannot execute action on (?:this channel type|a dm)",
    r"no mutual (?:guilds|servers)",
    r"not a member of the",
    r"is archived",
)

FORM: tuple[Rule, ...] = (
    Rule(
        "target",
        _R.PERMANENT_TARGET,
        codes=TARGET_CODES,
        text=TARGET_TEXT,
        exceptions=_words(
            "botblocked botkicked userdeactivated chatnotfound cantinitiateconversation "
            "canttalkwithbots userisblocked"
        ),
    ),
    Rule(
        "formatting",
        _R.FORMATTING,
        codes=_words(
            "50035 50006 50109 invalid_blocks invalid_blocks_format invalid_attachments "
            "block_mismatch no_text markdown_text_conflict invalid_form_data invalid_json "
            "json_not_object invalid_metadata_format button_data_invalid button_url_invalid "
            "entity_bounds_invalid reply_markup_invalid invalid_message "
            "attachment_payload_limit_exceeded button_type_invalid"
        ),
        text=_any(
            r"can'?t (?:parse|find (?:the )?end|found end)",
            r"unsupported (?:start|end) tag|unsupported parse_mode",
            r"unexpected end (?:tag|of)|unclosed (?:start )?tag|unmatched end tag",
            r"is reserved and must be escaped",
            r"invalid form body",
            r"cannot send an empty message",
            r"(?:message )?text (?:is|must be non-)empty",
            r"strings must be encoded in utf-?8",
            r"\bparse[_ ]mode\b",
            r"byte offset",
            r"wrong entity|invalid entit",
            r"invalid blocks|malformed",
        ),
        exceptions=_words("cantparseentities badmarkup"),
    ),
    Rule(
        "slack_refresh",
        _R.NETWORK_RETRYABLE,
        "refresh",
        platform="slack",
        codes=_words("warning refresh_requested"),
    ),
)

_SENDS = (
    r"(?:send(?:message|photo|document|audio|video|voice|animation|mediagroup|sticker|chataction)|editmessage\w*|"
    r"chat\.(?:postmessage|update)|files\.upload\w*|/messages\b)"
)
_RESET = (
    r"(?:connection (?:was )?(?:forcibly closed|aborted|reset)|forcibly closed by the remote|econnreset|errno 10054|epipe|"
    r"broken pipe|socket hang up|remote end closed|server disconnected)"
)

WIRE: tuple[Rule, ...] = (
    Rule("adapter_no_answer", _R.TIMEOUT_AMBIGUOUS, "no_answer", sent=Sent.MAYBE_SENT, answered=False),
    Rule(
        "dns",
        _R.NETWORK_RETRYABLE,
        "not_sent",
        text=_any(
            r"getaddrinfo",
            r"enotfound|eai_again",
            r"name or service not known|name resolution",
            r"nodename nor servname",
            r"no address associated",
            r"cannot connect to host",
            r"failed to resolve",
        ),
        exceptions=_words("gaierror nameresolutionerror clientconnectordnserror"),
    ),
    Rule(
        "connect",
        _R.NETWORK_RETRYABLE,
        "not_sent",
        text=_any(
            r"connection refused|econnrefused",
            r"network is unreachable|enetunreach|no route to host|ehostunreach",
            r"connect(?:ion)? (?:etimedout|timed? ?out|timeout)",
            r"connecttimeout(?:error)?",
            r"pool timeout|connection pool.{0,20}(?:exhausted|occupied)",
            r"connecterror",
            r"all connection attempts failed|failed to establish a new connection",
            r"proxy(?:error| connection)",
        ),
        exceptions=_words(
            "connecttimeout connecterror connectionrefusederror pooltimeout clientconnectorerror "
            "connectiontimeouterror connecttimeouterror newconnectionerror "
            "clientproxyconnectionerror proxyerror clientconnectorsslerror"
        ),
    ),
    Rule(
        "send_cut",
        _R.TIMEOUT_AMBIGUOUS,
        "cut",
        text=re.compile(rf"{_SENDS}.*{_RESET}|{_RESET}.*{_SENDS}", re.DOTALL),
    ),
    Rule(
        "timeout",
        _R.TIMEOUT_AMBIGUOUS,
        "no_answer",
        text=_any(
            r"\btimed[ _-]?out\b",
            r"(?:read|write|request|socket|gateway|response)[ -]?time-?d?[ -]?out",
            r"esockettimedout|etimedout",
            r"\btimeout\b.{0,30}\b(?:exceeded|expired|reached|error|of \d+)",
            r"timeout(?:error|exception)?$",
            r"did not respond (?:in|within)",
        ),
        exceptions=_words(
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
        text=_any(
            _RESET,
            r"unexpected eof|eof occurred|incomplete read",
            r"connection (?:closed|lost|error|broken|dropped)|connectionclosed",
            r"(?:websocket|gateway|session)\b.{0,40}\b(?:closed|invalidated|disconnect)",
            r"remoteprotocolerror|readerror|clientoserror",
            r"fetch failed|network (?:error|request failed)",
            r"cannot write to closing transport",
            r"zombie|heartbeat",
        ),
        exceptions=_words(
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
        codes=_words(
            "internal_error fatal_error service_unavailable request_timeout team_added_to_org "
            "130000 4000 4001 4002 4003 4005 4006 4007 4009 1000 1001 1006 1011 1012"
        ),
        text=_any(
            r"bad gateway",
            r"service (?:is )?(?:temporarily )?unavailable",
            r"temporarily (?:unavailable|overloaded)|currently overloaded",
            r"upstream connect error|no healthy upstream",
            r"restart(?:ing)? (?:later|in progress)",
        ),
        exceptions=_words(
            "discordservererror telegramservererror restartingtelegram serverdisconnectederror"
        ),
    ),
)

_GATEWAYS = frozenset({502, 503, *range(520, 531)}) - {524}

GENERIC: tuple[Rule, ...] = (
    Rule("discord_500", _R.UNKNOWN, "server", platform="discord", statuses=frozenset({500})),
    Rule("server", _R.NETWORK_RETRYABLE, "server", statuses=_GATEWAYS | {500}),
    Rule("status_401", _R.PERMANENT_AUTH, statuses=frozenset({401})),
    Rule("telegram_404", _R.PERMANENT_AUTH, "token_unknown", platform="telegram", statuses=frozenset({404})),
    Rule("status_403_404", _R.PERMANENT_TARGET, statuses=frozenset({403, 404, 410})),
    Rule("status_409", _R.CONFLICT, statuses=frozenset({409})),
    Rule("status_413", _R.TOO_LONG, statuses=frozenset({413})),
    Rule(
        "unauthorised",
        _R.PERMANENT_AUTH,
        text=_any(r"^\W*(?:error\W+)?(?:\d+\W+)?unauthori[sz]ed\b"),
        exceptions=_words("unauthorized"),
    ),
    Rule(
        "forbidden",
        _R.PERMANENT_TARGET,
        text=_any(r"^\W*forbidden\b"),
        exceptions=_words("forbidden telegramforbiddenerror"),
    ),
    Rule("unknown", _R.UNKNOWN),
)

RULES: tuple[Rule, ...] = (*OWN_SIDE, *SPECIFIC, *FORM, *WIRE, *GENERIC)
"""The whole table in order; the last rule matches everything."""
