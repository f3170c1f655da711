"""The net under the sentences: two words in relation, read only where no status and no known sentence speaks.

Each pattern joins a thing ("credit") and what befell it ("exceeded") within one sentence part; a word alone
never matches.
"""

from __future__ import annotations

import re

from hermes.core.failures import CallContext, FaultKind, Reason
from hermes.policy.rules import Rule, any_of
from hermes.policy.signals import Signals

_NO_REQUEST_FIELD = any_of(
    r"budget|max_?(?:completion_|output_)?tokens|\btools?\b|\barray\b|temperature|schema"
)


def _related(things: str, fates: str, gap: int = 50) -> re.Pattern[str]:
    """`things` before or after `fates`, at most `gap` characters of one line apart."""
    between = rf"[^\n.;]{{0,{gap}}}"
    return re.compile(rf"\b(?:{things})\b{between}\b(?:{fates})|\b(?:{fates})\b{between}\b(?:{things})\b")


def no_status(signals: Signals, _: CallContext) -> bool:
    """Whether no status blames anyone."""
    return signals.status is None or signals.status < 400


def _speaks_alone(signals: Signals, context: CallContext) -> bool:
    """Neither a status nor our own side of the wire says more than the text."""
    return no_status(signals, context) and signals.kind not in {FaultKind.UNMAPPED, FaultKind.REQUEST_INVALID}


def _refused(signals: Signals, _: CallContext) -> bool:
    """No status, or one that blames the request; and a number that can be a count of tokens is stated."""
    return (signals.status is None or signals.status in {200, 400, 413, 422}) and bool(
        re.search(r"\d{4,}", signals.text)
    )


STATUS_WEAK_RULES: tuple[Rule, ...] = (
    Rule(
        "weak_account_disabled",
        Reason.AUTH_PERMANENT,
        "account",
        statuses=frozenset({400, 401, 403}),
        text=_related(
            r"accounts?|organi[sz]ation|user|team|project|workspace|tenant",
            r"disabled|deactivated|suspended|banned|terminated|blocked|locked|restricted|on hold|closed",
            40,
        ),
    ),
    Rule(
        "weak_billing_status",
        Reason.BILLING,
        statuses=frozenset({400, 401, 403, 412, 429, 500}),
        text=_related(
            r"credits?|balance|funds|payments?|billing|wallet|invoices?|subscription",
            r"insufficient|depleted|exhausted|too low|empty|negative|overdue|expired|not enough"
            r"|inactive|unpaid|run out"
            r"|ran out|used up|past due|declined",
            40,
        ),
    ),
    Rule("status_451", Reason.PROVIDER_POLICY_BLOCKED, "region", statuses=frozenset({451})),
    Rule(
        "weak_policy_status",
        Reason.PROVIDER_POLICY_BLOCKED,
        "content",
        statuses=frozenset({400, 403, 422}),
        text=_related(
            r"content|prompt|input|output|response|request|polic(?:y|ies)|guidelines",
            r"blocked|flagged|violat\w*|inappropriate|unsafe|moderat\w*|filtered|disallowed|harmful",
            40,
        ),
    ),
)
"""The same where a status blames the request or the account but not for what."""

WEAK_RULES: tuple[Rule, ...] = (
    Rule(
        "weak_overflow",
        Reason.CONTEXT_OVERFLOW,
        text=_related(
            r"(?:prompt|input|context|messages?|conversation|sequence)[ _]?(?:tokens?|length|size"
            r"|window)|n_ctx|max_seq_len"
            r"|max_model_len",
            r"exceed\w*|less than|too (?:long|many|large)|limit|maximum|greater|longer|larger"
            r"|truncat\w*|>=?|at most|over",
            60,
        ),
        unless=_NO_REQUEST_FIELD,
        test=_refused,
    ),
    Rule(
        "weak_billing",
        Reason.BILLING,
        text=_related(
            r"credits?|balance|billing|payments?|funds|spending|invoices?|budget|prepaid|wallet",
            r"insufficient|exceeded|exhausted|depleted|low|empty|zero|overdue|required|expired|add"
            r"|upgrade|purchase|top"
            r"|negative|ran out|run out|out of|not enough|used up|fail(?:ed|ure)",
            40,
        ),
        vacuous=False,
        test=_speaks_alone,
    ),
    Rule(
        "weak_auth",
        Reason.AUTH,
        text=_related(
            r"api[- _]?keys?|keys?|tokens?|credentials?|authentication|authorization|auth|login|session"
            r"|oauth|bearer",
            r"invalid\w*|expired?|missing|denied|wrong|incorrect|revoked|rejected|required|unauthorized"
            r"|failed|forbidden"
            r"|not (?:valid|found|provided|authorized|set)|malformed",
            40,
        ),
        vacuous=False,
        test=_speaks_alone,
    ),
    Rule(
        "weak_model",
        Reason.MODEL_NOT_FOUND,
        text=_related(
            r"models?|deployment",
            r"not (?:found|exist|available|supported|accessible|allowed|enabled|loaded)|unavailable"
            r"|unknown|unsupported"
            r"|invalid|deprecated|retired|may not exist|no access|unloaded|missing",
            50,
        ),
        unless=any_of(r"temporar|try again (?:later|in)|busy|overload"),
        vacuous=False,
        test=_speaks_alone,
    ),
    Rule(
        "weak_rate_limit",
        Reason.RATE_LIMIT,
        "unsure",
        retryable=False,
        text=_related(
            r"limits?|quotas?|requests|usage|allocation",
            r"reached|exceeded|hit|exhausted|too many|used up|throttl\w*|slow down|cool(?:ing)? ?down"
            r"|resets?|refill\w*",
            50,
        ),
        vacuous=False,
        test=_speaks_alone,
    ),
    Rule(
        "weak_policy",
        Reason.PROVIDER_POLICY_BLOCKED,
        text=_related(
            r"content|prompt|response|request|output|policy|policies|safety|guardrails?|terms",
            r"blocked|flagged|violat\w*|prohibited|inappropriate|unsafe|moderation|refused by|filtered"
            r"|SAFETY",
            40,
        ),
        vacuous=False,
        test=_speaks_alone,
    ),
    Rule(
        "weak_overloaded",
        Reason.OVERLOADED,
        text=_related(
            r"server|service|model|provider|system|capacity|engine|cluster|backend|infrastructure",
            r"busy|unavailable|overload\w*|exhausted|full|saturated|high (?:load|demand|traffic)|maintenance",
            50,
        ),
        vacuous=False,
        test=_speaks_alone,
    ),
    Rule(
        "weak_timeout",
        Reason.TIMEOUT,
        text=_related(
            r"connection|connect|network|socket|stream|response|request|server|upstream|transport|tls"
            r"|ssl|read|write",
            r"time-?outs?|timed|closed|reset|lost|dropped|interrupted|aborted|ended|refused|unreachable"
            r"|broken|cancel\w*"
            r"|terminated|disconnect\w*|incomplete|unexpected\w*|eof",
            50,
        ),
        vacuous=False,
        test=_speaks_alone,
    ),
    Rule(
        "weak_server_error",
        Reason.SERVER_ERROR,
        text=_related(
            r"server|service|provider|upstream|internal|backend|engine|worker",
            r"errors?|failed|failure|crash\w*|exception|issues?|problem|went wrong|broken",
            40,
        ),
        vacuous=False,
        test=_speaks_alone,
    ),
)
