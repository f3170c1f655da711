"""What a platform's refusal means: signals read from the facts, and one ordered table of named rules.

Order: what our side of the wire saw; the sentences and codes that each platform documents (the narrower
first: "too long" before "bad form"); what exceptions and statuses say when nothing better is known. A status
or an exception class alone is weak: python-telegram-bot's old ``Unauthorized`` also meant "blocked by the
user", and Slack refuses with a 200.
"""

from __future__ import annotations

from hermes.core.delivery import DeliveryReason, Sent
from hermes.policy.delivery_rule import Rule, any_of, words
from hermes.policy.delivery_rules_wire import GENERIC, WIRE

_R = DeliveryReason


OWN_SIDE: tuple[Rule, ...] = (
    Rule(
        "certificate",
        _R.FATAL_CONFIG,
        "certificate",
        text=any_of(
            r"certificate[ _]verify[ _]failed",
            r"self[- ]signed certificate",
            r"unable to (?:get|verify).{0,30}certificate",
            r"certificate has expired",
        ),
        exceptions=words("clientconnectorcertificateerror sslcertverificationerror"),
    ),
    Rule("adapter_not_sent", _R.NETWORK_RETRYABLE, "not_sent", sent=Sent.NOT_SENT),
)

SPECIFIC: tuple[Rule, ...] = (
    Rule(
        "not_modified",
        _R.UNKNOWN,
        "not_modified",
        text=any_of(r"message (?:is )?not modified", r"message_not_modified"),
    ),
    Rule(
        "conflict",
        _R.CONFLICT,
        codes=words("too_many_websockets 40060"),
        text=any_of(
            r"terminated by other (?:getupdates|long poll)",
            r"getupdates method while webhook is (?:active|set)",
            r"only one bot instance",
            r"too many (?:web)?sockets",
        ),
        exceptions=words("conflict telegramconflicterror"),
    ),
    Rule(
        "too_long",
        _R.TOO_LONG,
        codes=words(
            "40005 msg_too_long msg_blocks_too_long too_many_attachments file_too_large "
            "too_many_blocks base_type_max_length max_embed_size_exceeded message_too_long "
            "media_caption_too_long entities_too_long list_item_too_long 30015"
        ),
        text=any_of(
            r"(?:message|text|caption|content|msg)\b.{0,20}\btoo (?:long|large|big)",
            r"or fewer in length",
            r"between \d+ and \d+ in length",
            r"must be (?:less|shorter|fewer|no more) than \d+ (?:characters|items)",
            r"(?:no more|not more) than \d+ (?:characters|items(?! allowed \[json-pointer:/blocks/\d))",
            r"at most \d+ characters",
            r"request entity too large|payload too large|content too large",
            r"file is too (?:big|large)",
            r"exceeds? (?:the )?(?:maximum|max)\b.{0,30}\b(?:size|length|characters)",
            r"too many characters|\b(?:text|message|media|caption|entities)_(?:caption_)?too_long\b",
            r"(?:file|attachment|upload)s?\b.{0,30}\bexceeds?\b",
            r"embed size exceeds",
        ),
        exceptions=words("messagetoolong telegramentitytoolarge messageistoolong"),
    ),
    Rule(
        "flood",
        _R.FLOOD_WAIT,
        codes=words(
            "ratelimited rate_limited rate_limit_exceeded message_limit_exceeded 40062 20016 "
            "20022 20028 20029 31001 31002 30046 40003 4008"
        ),
        text=any_of(
            r"flood[ _](?:control|wait)",
            r"slowmode[ _]wait|slow ?mode rate limit",
            r"too many requests",
            r"rate[- ]?limit(?:ed| was exceeded| exceeded|ing|(?: has been| was)? (?:reached|hit))\b",
            r"retry after \d",
            r"error code: 1015\b",
            r"session start limit|sessions? remaining|messages? too (?:fast|quickly|often)",
        ),
        exceptions=words(
            "retryafter telegramretryafter floodwait ratelimited floodwaiterror ratelimiterror floodcontrol"
        ),
    ),
    Rule("flood_status", _R.FLOOD_WAIT, statuses=frozenset({429})),
    Rule(
        "intents",
        _R.FATAL_CONFIG,
        "intents",
        codes=words("4013 4014 disallowed_intents"),
        text=any_of(r"(?:disallowed|privileged|invalid) (?:gateway )?intents?"),
        exceptions=words("privilegedintentsrequired"),
    ),
    Rule(
        "config",
        _R.FATAL_CONFIG,
        codes=words(
            "missing_scope not_allowed_token_type no_permission link_disabled 4010 4011 4012 "
            "unknown_method method_deprecated deprecated_endpoint "
            "app_missing_action_url invalid_scope method_not_supported_for_channel_type_token "
            "missing_charset_token enterprise_is_restricted app_not_installed "
            "invalid_app_id socket_mode_disabled 20012 as_user_not_supported"
        ),
        text=any_of(
            r"shard(?:ing)? (?:is )?required|requires sharding",
            r"must provide .{0,40}token",
            r"token (?:is |was )?(?:not provided|missing|required|undefined|empty|not set)",
            r"no (?:bot |app |api )?token (?:was )?(?:provided|given|set|found)",
            r"missing (?:bot |app |api )?token",
            r"(?:you must|must) pass (?:the|a)\b.{0,20}token",
            r"socket mode (?:is )?(?:not enabled|not turned on|disabled)",
            r"bad webhook",
            r"webhook can be set up only",
            r"https url must be provided for webhook",
            r"expected token to be set",
            r"invalid (?:api )?version specified",
        ),
        exceptions=words("appinitializationerror boltconfigurationerror"),
    ),
    Rule(
        "auth",
        _R.PERMANENT_AUTH,
        codes=words(
            "invalid_auth not_authed account_inactive token_revoked token_expired invalid_token "
            "org_login_required ekm_access_denied two_factor_setup_required "
            "team_access_not_granted 40001 50014 50025 4004 40002 token_invalid tokeninvalid "
            "bot_invalid invalid_refresh_token user_removed_from_team"
        ),
        text=any_of(
            r"improper token",
            r"invalid (?:bot |auth\w* |api )?token",
            r"token\b.{0,60}\b(?:rejected|revoked|expired|invalid)\b",
            r"authentication failed",
            r"incorrect login",
            r"\blogged out\b",
            r"api token is (?:invalid|incorrect)",
        ),
        exceptions=words(
            "invalidtoken loginfailure tokenvalidationerror tokeninvalid telegramunauthorizederror"
        ),
    ),
    Rule(
        "migrated",
        _R.PERMANENT_TARGET,
        "migrated",
        text=any_of(
            r"migrated to (?:a )?supergroup",
            r"upgraded to (?:a )?supergroup",
            r"group migrated",
            r"chat migrated",
        ),
        exceptions=words("chatmigrated telegrammigratetochat migratetochat"),
    ),
    Rule(
        "message_gone",
        _R.PERMANENT_TARGET,
        "message_gone",
        codes=words("10008 message_not_found"),
        text=any_of(
            r"message to (?:delete|edit|react\w*|pin|forward|copy) not found",
            r"unknown message\b",
            r"message_id_invalid",
        ),
    ),
)

TARGET_CODES = words(
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
    "peer_id_invalid user_id_invalid chat_id_invalid query_id_invalid 160002 topic_closed topic_deleted "
    "topic_id_invalid channel_private channel_invalid message_author_required "
    "input_user_deactivated user_banned_in_channel bot_group_blocked"
)
TARGET_TEXT = any_of(
    r"\b(?:chat|channel|user|group|thread|topic|member|peer|recipient|guild|webhook|interaction)"
    r" (?:was |is )?(?:not found|not exist|deleted|deactivated|archived|closed)",
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
    r"not a member of the|\b(?:chat|user|voice|channel|peer)_\w*forbidden\b|without permission to",
    r"is archived",
)

FORM: tuple[Rule, ...] = (
    Rule(
        "target",
        _R.PERMANENT_TARGET,
        codes=TARGET_CODES,
        text=TARGET_TEXT,
        exceptions=words(
            "botblocked botkicked userdeactivated chatnotfound cantinitiateconversation "
            "canttalkwithbots userisblocked"
        ),
    ),
    Rule(
        "formatting",
        _R.FORMATTING,
        codes=words(
            "50035 50006 50109 invalid_blocks invalid_blocks_format invalid_attachments "
            "block_mismatch no_text markdown_text_conflict invalid_form_data invalid_json "
            "json_not_object invalid_metadata_format button_data_invalid button_url_invalid "
            "entity_bounds_invalid reply_markup_invalid invalid_message "
            "attachment_payload_limit_exceeded button_type_invalid"
        ),
        text=any_of(
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
            r"wrong entity|invalid entit|\b(?:entity|entities|button|keyboard|reply_markup)_\w*invalid\b",
            r"invalid blocks|malformed",
        ),
        exceptions=words("cantparseentities badmarkup"),
    ),
    Rule(
        "slack_refresh",
        _R.NETWORK_RETRYABLE,
        "refresh",
        platform="slack",
        codes=words("warning refresh_requested"),
    ),
)

RULES: tuple[Rule, ...] = (*OWN_SIDE, *SPECIFIC, *FORM, *WIRE, *GENERIC)
"""The whole table in order; the last rule matches everything."""
