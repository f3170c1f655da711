"""Rules over decisive provider codes: each means one thing wherever it stands.

Sources: the providers' published error lists (OpenAI, Anthropic, Google RPC, AWS Bedrock, Azure OpenAI,
Alibaba Model Studio, Z.ai, MiniMax, Moonshot, Groq, GitHub Models, llama.cpp) and tests/data/errors.
"""

from __future__ import annotations

import re

from hermes.core.failures import Reason
from hermes.policy.rules import Rule, any_of, codes
from hermes.policy.wording import INPUT_PLUS_OUTPUT, OUTPUT_CAP, OVERFLOW
from hermes.policy.wording_service import USAGE_WINDOW

_ZAI = re.compile(r"zai|z\.ai|zhipu|bigmodel|glm")
_MINIMAX = re.compile(r"minimax")
_DASHSCOPE = re.compile(r"dashscope|qwen|aliyun|alibaba|modelstudio|bailian")


CODE_RULES: tuple[Rule, ...] = (
    Rule("status_407", Reason.AUTH, "proxy", statuses=frozenset({407})),
    Rule(
        "code_thinking_signature",
        Reason.THINKING_SIGNATURE,
        codes=codes("""
            invalid_encrypted_content thinking_signature_invalid invalid_thinking_signature
        """),
    ),
    Rule(
        "code_region",
        Reason.PROVIDER_POLICY_BLOCKED,
        "region",
        codes=codes("""
            unsupported_country_region_territory unsupported_region unsupported_country
            region_not_supported
        """),
    ),
    Rule(
        "code_content_filter",
        Reason.PROVIDER_POLICY_BLOCKED,
        "content",
        codes=codes(r"""
            content_filter content_policy_violation workspace_policy_violation
            responsibleaipolicyviolation data_?inspection_?failed content_filtered sensitive_content.*
            moderation_blocked cyber_policy.* prohibited_content content_policy safety_violation
            image_safety inputtextsensitivecontentdetected.* outputtextsensitivecontentdetected.*
            inputimagesensitivecontentdetected.* content_moderation.* input_moderation harmful_content.*
            policy_violation cyber_policy_violation (?:\w+_)?unsafe_\w+ bio_policy.* .*datainspectionfailed
        """),
    ),
    Rule(
        "code_account_disabled",
        Reason.AUTH_PERMANENT,
        "account",
        codes=codes("""
            account_deactivated organization_on_hold parent_organization_required
            organization_type_not_supported account_disabled account_suspended account_banned
            organization_disabled org_disabled consumer_suspended user_suspended
            organization_deactivated account_terminated user_deactivated workspace_deactivated
            organization_restricted deactivated_workspace access_terminated(?:_error)?
        """),
        unless=USAGE_WINDOW,
    ),
    Rule(
        "code_credential_forbidden",
        Reason.AUTH_PERMANENT,
        "credential",
        codes=codes("oauth_org_not_allowed oauth_not_allowed api_key_leaked"),
    ),
    Rule("code_in_flight_budget", Reason.RATE_LIMIT, "in_flight", codes=codes("in_flight_budget_exhausted")),
    Rule(
        "code_quota_per_minute",
        Reason.RATE_LIMIT,
        "throttle",
        provider=_DASHSCOPE,
        codes=codes("insufficient_quota throttling.*"),
        test=lambda s, _: (
            not any(c.startswith("arrearage") for c in s.codes)
            and (
                "insufficient_quota" not in s.codes
                or "#token-limit" in s.urls
                or "rate-limit" in s.urls
                or "allocated quota" in s.text
            )
        ),
    ),
    Rule(
        "code_billing",
        Reason.BILLING,
        codes=codes(r"""
            insufficient_quota exceeded_current_quota_error insufficient_balance(?:_error)?
            insufficient_credits? insufficient_funds arrearage billing_not_active
            billing_hard_limit_reached billing_error payment_required(?:_error)? budget_exceeded
            credit_limit_exceeded (?:contract|enforced|linked_organization)_spend_limit_reached
            linked_organization_billing_unavailable user_profile_not_billable
            usage_not_included user_profile_billing_not_authorized out_of_credits credits?_exhausted billing_disabled
            allocationquota\.freetieronly prepaidbilloverdue postpaidbilloverdue accountoverdueerror
            account_?overdue.* creditserror insufficient_user_quota insufficient_account_balance
            spend_?limit_.* budget_limit_exceeded prepayment_required key_budget_exceeded
            commodity\.?not\.?purchased pre_consume_token_quota_failed subscription_(?:expired|inactive)
            no_credits? credit_balance_too_low monthly_limit_(?:exceeded|reached) trial_expired
            insufficient_?quota_?error
        """),
    ),
    Rule(
        "code_billing_zai",
        Reason.BILLING,
        codes=codes("1113 1112 1309"),
        test=lambda s, _: bool(_ZAI.search(s.provider)) or "balance" in s.text or "package" in s.text,
    ),
    Rule(
        "code_overflow",
        Reason.CONTEXT_OVERFLOW,
        codes=codes("""
            context_length_exceeded exceed_context_size_error model_max_prompt_tokens_exceeded
            tokens_limit_reached context_window_exceeded model_context_window_exceeded context_too_long
            prompt_too_long input_too_long context_length_error max_context_length_exceeded
            contextwindowexceedederror contextlengthexceeded 1261 context_window_overflow
            context_limit_exceeded input_tokens_exceeded
        """),
        test=lambda s, _: (
            not re.search(r"max_?(?:completion_|output_)?tokens", s.param)
            and ("1261" not in s.codes or bool(_ZAI.search(s.provider)) or "length" in s.text)
            and not OUTPUT_CAP.search(s.text)
            and not INPUT_PLUS_OUTPUT.search(s.text)
        ),
    ),
    Rule(
        "code_image_too_large",
        Reason.IMAGE_TOO_LARGE,
        codes=codes("""
            image_too_large image_dimensions_too_large image_size_exceeded image_dimensions_exceeded
            image_file_too_large max_image_size_exceeded invalid_image_size
        """),
    ),
    Rule(
        "code_payload_too_large",
        Reason.PAYLOAD_TOO_LARGE,
        codes=codes(r"""
            payload_too_large(?:_error)? request_body_too_large_after_decoding request_too_large
            request_entity_too_large entity\.too\.large content_too_large body_too_large
            fst_err_ctp_body_too_large function_payload_too_large
        """),
        test=lambda s, _: not OVERFLOW.search(s.text),
    ),
    Rule(
        "code_model_not_found",
        Reason.MODEL_NOT_FOUND,
        codes=codes(r"""
            model_not_found(?:_error)? deploymentnotfound model_not_supported modelnotfound
            unknown_model model_not_exist model_not_available model_decommissioned invalid_model
            model_deprecated model_not_open modelnotopen invalid_model_error no_model_access
            model_not_allowed model_access_denied invalidendpointormodel\.notfound model_terms_required
            model_permission_denied unsupported_model model_retired model_does_not_exist 1211
            unsupported_api_for_model dedicated_endpoint_not_running model_not_loaded
            model\.?not\.?supported invalid_model_name no_available_model_endpoints
        """),
        test=lambda s, _: "1211" not in s.codes or bool(_ZAI.search(s.provider)) or "model" in s.text,
    ),
    Rule(
        "code_auth",
        Reason.AUTH,
        codes=codes("""
            api_key_invalid api_key_scope_missing service_disabled invalid_api_key invalidapikey
            expired_api_key api_key_expired token_expired expired_token invalid_token invalid_grant
            refresh_token_reused token_invalidated token_revoked access_token_scope_insufficient
            missing_api_key credentials_missing unauthenticated expiredtokenexception
            invalid_authentication_error unrecognizedclientexception invalidsignatureexception
            incorrect_api_key_error wrong_api_key no_api_key api_key_not_found auth_unavailable
            token_not_found invalid_x_api_key bad_credentials invalid_api_key_error missing_scope.*
            refresh_token_(?:expired|invalidated|revoked|not_found) invalid_refresh_token
            api_key_service_blocked invalid_client session_expired api_key_http_referrer_blocked
            api_key_ip_address_blocked credentials_expired iam_permission_denied
        """),
    ),
    Rule(
        "code_grammar",
        Reason.LLAMA_CPP_GRAMMAR_PATTERN,
        codes=codes("grammar_error invalid_grammar grammar_parse_error"),
    ),
    Rule(
        "code_overloaded",
        Reason.OVERLOADED,
        codes=codes("""
            overloaded_error overloaded engine_overloaded(?:_error)? server_overloaded model_overloaded
            server_is_overloaded model_capacity_exhausted capacity_exceeded no_capacity
            model_at_capacity serveroverloaded system_busy system_cpu_overloaded model_busy server_busy
            modelnotreadyexception model_loading capacity_unavailable insufficient_capacity
            no_capacity_available nocapacity high_demand system_overloaded 1305 1312 slow_down
        """),
        test=lambda s, _: (
            s.status != 402
            and (not s.codes & {"1305", "1312"} or bool(_ZAI.search(s.provider)) or "overload" in s.text)
        ),
    ),
    Rule(
        "code_usage_window",
        Reason.RATE_LIMIT,
        "window",
        codes=codes("usage_limit_reached 1308 1310 quota_exhausted"),
        test=lambda s, _: bool({"usage_limit_reached", "quota_exhausted"} & s.codes) or "limit" in s.text,
        unless=any_of(r"credits? (?:balance|exhausted)", r"insufficient (?:balance|credits?)", r"limit: 0\b"),
    ),
)
