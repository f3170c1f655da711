"""Wordings of failures, as relations between words. Matched over `Signals.text` (lower case, one message a
line, no quotes, back-ticks, apostrophes or URLs: "isn't" reads "isnt", "model's" reads "models").

Sources: tests/data/errors (each with its public report) and the providers' published error pages.
"""

from __future__ import annotations

from hermes.policy.rules import any_of

THINKING_SIGNATURE = any_of(
    "invalid signature in (?:thinking|reasoning|redacted_thinking)",
    "thinking or redacted_thinking blocks in the latest assistant message cannot be modified",
    "expected thinking or redacted_thinking, but found",
    "signature:? field required",
    r"\bthinking\.signature\b",
    r"thinking blocks?[^\n]{0,80}\b(?:signature|cannot be modified|must remain as they were)",
    r"signature[^\n]{0,40}\b(?:thinking|reasoning) block",
    "(?:missing|invalid|corrupted|malformed|incorrect) (?:a )?thought[ _]?signature",
    r"thought[ _]?signature[^\n]{0,40}(?:is not valid|is invalid|is missing|required|not valid"
    "|could not|mismatch)",
    r"function ?call[^\n]{0,60}missing[^\n]{0,12}thought_signature",
    r"encrypted (?:content|reasoning)[^\n]{0,80}(?:could not be|cannot be|failed"
    r" to)[^\n]{0,20}(?:verif|decrypt|pars)",
    "reasoning_content in the thinking mode must be passed back",
    "final assistant message must start with a thinking block",
)

LONG_CONTEXT_TIER = any_of(
    "extra usage (?:is )?required for (?:the )?(?:long|1m)[ -]context",
    "extra usage (?:is )?required for 1m",
    r"long[ -]context (?:requests?|usage|tier|pricing)[^\n]{0,60}(?:require|not (?:available"
    "|enabled|included)|upgrade)",
    r"1m[ -](?:token )?context[^\n]{0,60}(?:requires?|needs) (?:extra usage|usage|credits|tier|a )",
)

LONG_CONTEXT_BETA = any_of(
    r"long[ -]context beta[^\n]{0,40}(?:not (?:yet )?(?:available|supported|enabled|allowed)"
    "|forbidden|unavailable)",
    "incompatible with the long[ -]context beta",
    r"context-1m-\d{4}[^\n]{0,80}(?:not|unsupported|invalid|unexpected|forbidden|incompatible"
    "|denied)",
    r"(?:unexpected|unsupported|invalid)[^\n]{0,60}anthropic-beta[^\n]{0,60}context-1m",
)

GRAMMAR = any_of(
    r"fail(?:ed|ure)? to (?:parse|initiali[sz]e|compile|create|convert)[^\n]{0,30}\b(?:grammar"
    r"|samplers?)\b",
    "error parsing grammar",
    "json schema conversion failed",
    r"unable to (?:generate|parse|compile)[^\n]{0,20}grammar",
    r"pattern must start with \^ and end with \$",
    r"grammar (?:parse|parsing|compil\w+) (?:error|failed)",
    r"\bparse: error[^\n]{0,40}grammar",
    "unable to generate parser for this template",
    r"invalid grammar\b",
    r"(?:unsupported|invalid|unrecognized)[^\n]{0,30}\bpattern\b[^\n]{0,40}(?:grammar"
    r"|schema)[^\n]{0,20}gbnf",
)

REGION = any_of(
    "user location is not supported",
    "country, region,? or territory not supported",
    r"not (?:available|supported|offered|accessible|allowed)[^\n]{0,20} in your (?:country|region"
    "|territory|location)",
    "(?:unsupported|restricted|sanctioned) (?:countr|region|territor|location)",
    r"access[^\n]{0,40}not allowed from (?:unsupported|restricted|your)",
    r"your (?:country|region) is (?:not|un)|(?:block|restrict)\w*[^\n]{0,20} from your (?:country|region)",
    "geo(?:graphic(?:al)?)?[- ]?(?:restrict|block)",
)

CONTENT = any_of(
    "blocked by content filter",
    "content management policy",
    r"(?:content|safety)[ _-]?(?:filter|polic)[^\n]{0,40}(?:trigger|violat|block|reject|refus)",
    r"(?:trigger|violat|block|reject|refus|flagg)\w*[^\n]{0,60}(?:content|safety|usage"
    "|moderation)[ _-]?(?:filter|polic|guideline|system)",
    r"violat\w+[^\n]{0,40}(?:guardrail|usage polic|terms of service|acceptable use|safety|our polic"
    "|community guideline)",
    r"(?:may |might |potentially )?contain\w*[^\n]{0,20}(?:inappropriate|sensitive|unsafe|harmful"
    "|prohibited)",
    "data ?inspection ?failed",
    "content exists risk",
    r"\b(?:input|output) new_sensitive",
    r"flagged (?:for|as|by)\b",
    r"flagged[^\n]{0,30}(?:as potentially|by (?:our|the) (?:moderation|safety))",
    "requires moderation",
    "prohibited[_ ]content",
    "rejected (?:as a result of|by) (?:our|the) safety",
    "(?:不安全|敏感)(?:或敏感)?内容",
    "considered high risk",
    r"(?:blocked|filtered|stopped)[^\n]{0,30}(?:due to|by|for|because of) (?:the )?(?:safety"
    "|content|recitation|responsible)",
    "response was (?:blocked|filtered)",
    "prompt was (?:blocked|flagged|rejected)",
    r"block_?reason: ?\w+",
    "unable to respond to this request, which appears to violate",
    r"guardrail[^\n]{0,30}(?:interven|block|violat)",
)

DATA_POLICY = any_of(
    r"no (?:endpoints?|providers?|allowed providers)[^\n]{0,40}(?:match\w* your|compl\w+"
    r" with)[^\n]{0,40}(?:data|privacy|guardrail|polic)",
    r"(?:guardrail restrictions|data policy|privacy settings)[^\n]{0,60}(?:no |not |configure)",
    "no allowed providers are available",
    "prohibited due to a violation of provider terms",
    "all providers have been ignored",
    r"zero data retention[^\n]{0,60}(?:not|no )",
)

EDGE_BLOCK = any_of(
    r"access denied\. please check your network settings",
    "^request not allowed$",
    "sorry, you have been blocked",
    r"attention required!? ?\| ?cloudflare",
    r"just a moment\.\.\.",
    "enable javascript and cookies to continue",
    r"cloudflare ray id[^\n]{0,80}blocked",
    r"error (?:code:? )?10(?:09|10|20)\b",
)

ACCOUNT_DISABLED = any_of(
    r"(?:organi[sz]ation|account|user|workspace|project|team|tenant|service)\b[^\n]{0,60}\b(?:has"
    " been|have been|is|was|been) (?:permanently |temporarily )?(?:disabled?|deactivated"
    "|suspended|banned|terminated|restricted|locked out)",
    r"(?:api[ _]?key|consumer)\b[^\n]{0,80}has been (?:suspended|banned|blocked)",
    r"your account[^\n]{0,40}\b(?:deactivated|banned|terminated)",
    "has been denied access",
    "access has been (?:restricted|disabled)",
    "(?:key|credential|token) was reported as leaked",
    "(?:leaked|compromised) (?:api )?(?:key|credential)",
    "disabled in this account for violation",
    r"access (?:to [^\n]{0,40})?(?:has been|was) (?:revoked by|terminated|suspended)",
)

CREDENTIAL_FORBIDDEN = any_of(
    "organi[sz]ation does not have access to",
    r"oauth (?:authentication|tokens?|access|login)[^\n]{0,40}(?:currently )?(?:is )?not"
    " (?:supported|allowed|permitted|enabled)",
    "credential is only authorized for",
    "only authorized for use with",
    "personal access tokens? (?:are|is) not supported",
    "only available (?:for|to|through|via|in) (?:coding agents|claude code|the official)",
    r"(?:third[- ]party|unofficial) (?:apps?|clients?|harness\w*|tools?)[^\n]{0,60}(?:not"
    " (?:allowed|permitted|supported)|prohibited|blocked)",
    "not (?:authorized|allowed|permitted|licensed) (?:to use|for) (?:this )?(?:copilot|feature)",
    "(?:token|key|credential|subscription) (?:type )?(?:is |are )?(?:not (?:supported|allowed"
    "|accepted)) (?:for|on|by|at) this",
    "(?:disabled|forbidden|blocked) by (?:your )?(?:organi[sz]ation|admin|enterprise|company)",
    r"organi[sz]ation has disabled[^\n]{0,40}access",
    "does not allow (?:api key|oauth) (?:auth|access)",
)

BILLING = any_of(
    r"insufficient[ _](?:\w+ ){0,3}(?:balance|credits?|funds)",
    "balance (?:is )?(?:too low|not enough|insufficient|exhausted)",
    "credit balance is too low",
    "no resource package",
    "can only afford",
    "requires? more credits|more credits are required",
    r"reaching the[^\n]{0,20}spending limit",
    "paid balance",
    "out of (?:extra usage|credits?|funds|tokens balance)",
    "payment required",
    "(?:doesnt|dont|do not|does not) have (?:any |enough |sufficient )?(?:credits?|balance|funds)",
    r"(?:used|spent|consumed) (?:up )?(?:all|your)[^\n]{0,40}credits?",
    r"credits?[^\n]{0,40}(?:depleted|exhausted|ran out|used up|expired|run out|are exceeded)",
    r"(?:exceeded|reached|hit|used)[^\n]{0,40}(?:monthly|spend(?:ing)?|budget|credit"
    r"|usage)[ -](?:\w+ )?(?:spend|spending|budget|credits?|cap|allowance|quota)",
    r"(?:monthly|spending|spend|budget|credit|hard|key|billing|usd|cost)[ -](?:\w+"
    r" ){0,2}limit[^\n]{0,30}(?:exceeded|reached|hit)",
    r"(?:exceeded|reached|hit|over)[^\n]{0,30}(?:monthly|spending|spend|budget|credit|billing"
    r"|dollar)[ -](?:\w+ ){0,2}limit",
    r"(?:monthly|month)[^\n]{0,40}(?:quota|allowance|included)[^\n]{0,40}(?:exceeded|exhausted"
    "|reached|used)",
    r"(?:exceeded|exhausted|reached|used)[^\n]{0,40}(?:monthly|month)[^\n]{0,20}(?:quota"
    "|allowance|included|requests)",
    "specified api usage limits",
    "budget (?:has been |limit )?exceeded",
    r"exceeded (?:\w+ ){0,2}budget",
    r"(?:prompt|total|completion) tokens limit exceeded: ?\d+ ?> ?\d+[^\n]{0,20}to increase",
    r"account[^\n]{0,80}(?:good standing|arrears?|overdue|in debt|unpaid)",
    "(?:overdue|unpaid|outstanding) (?:payment|bill|balance|invoice)",
    "check your billing (?:details|status)",
    "billing (?:is )?(?:not (?:active|enabled)|disabled|hard limit|inactive)",
    "requires billing to be enabled",
    "(?:enable|activate|set ?up) billing",
    r"(?:please )?(?:recharge|top[ -]?up)(?: your)?(?: account| balance| credits?)?\b(?:\.|,| to|"
    " and|$| at| in)",
    r"\bfree (?:tier|quota|trial|credits?|usage)[^\n]{0,60}(?:exhausted|expired|used up|has ended"
    "|been exceeded|ran out)",
    r"(?:subscription|plan|package|trial)[^\n]{0,40}(?:has |have )?(?:expired|lapsed|ended|is"
    " inactive|been cancell?ed)",
    "draw from (?:your )?extra usage",
    "余额不足",
    "欠费",
    "(?:purchase|buy|add) (?:more )?credits(?: (?:to|or|at|before)|$|\\.)",
    r"insufficient[^\n]{0,20}(?:diem|wallet|prepaid)",
    "quota is not enough",
    "用户额度不足",
    "额度(?:已|不足|用尽)",
    "premium request (?:allowance|quota)",
)

QUOTA_SENTENCE = any_of(
    "exceeded (?:your )?current quota,? please check your plan and billing",
)

OVERFLOW = any_of(
    r"number of (?:input |prompt )?tokens[^\n]{0,30}exceed",
    r"tokens in (?:the |your )?(?:request|prompt|input)[^\n]{0,20} (?:more|greater|larger) than max",
    r"maximum (?:context|prompt|sequence|input|model) length (?:is|of|for|\()",
    "maximum (?:context|prompt|model) length",
    "(?:exceed|over|beyond|larger than|longer than|greater than|more than|gather than|too"
    r" (?:long|large|big) for|overflow)\w*[^\n]{0,60}\b(?:context|max(?:imum)? model)"
    " ?-?(?:length|window|size|limit)",
    r"context (?:length|window|size|limit)[^\n]{0,40}(?:exceeded|exceeds|overflow|too (?:small"
    r"|long)|is (?:full|only \d))",
    r"(?:max(?:imum)?|known) context(?: limit| length| window| size)?\b[^\n]{0,60}(?:\d|reduce"
    "|exceed)",
    "reached (?:the )?(?:max(?:imum)? )?context (?:length|window|limit|size)",
    "prompt (?:is )?too long",
    "input (?:is|was) too long",
    "input (?:is )?too large to process",
    r"prompt (?:tokens?|token count|length)[^\n]{0,30}(?:exceeds?|is too|>|larger|greater) ",
    "prompt exceeds max length",
    r"(?:input|prompt|request|message|messages|total|requested)\w* ?(?:tokens?|length|token count"
    r"|message token length)\b[^\n]{0,50}(?:exceed|longer|larger|greater|over|above|too (?:long"
    "|large|many))",
    "exceeds? (?:the )?(?:max(?:imum)? |model |models? )?(?:number of |allowed )?(?:input "
    r"|prompt )?tokens?(?: limit| allowed| count)?\b(?! per)",
    "exceeded model token limit",
    r"max(?:imum)? (?:body )?size:? ?\d+ tokens",
    "reduce (?:the )?length of (?:the )?(?:messages|prompt|input)",
    r"tokens? \+ max_(?:new_)?tokens[^\n]{0,30}must be <?=",
    r"expected maxlength: ?\d+, actual: ?\d+",
    "range of input length should be",
    r"\bthe \d+ tokens when context the overflows",
    r"max_tokens must be at least 1, got -\d",
    r"cannot exceed \d+ tokens",
    r"model only supports up to \d+",
    r"(?:prompt|input|request|conversation)[^\n]{0,30}\b\d+ tokens\b[^\n]{0,60}(?:window|limit"
    r"|context|maximum)[^\n]{0,20}\d",
    "ran out of room in the models? context",
    r"content\W*: string too long\. expected a string with maximum length",
    r"requires approximately \d+ tokens",
    r"context window (?:exceeds|is \d)",
    r"超出?(?:过|了)?[^\n]{0,12}(?:上下文|最大长度|长度限制)",
    r"(?:context|上下文)[^\n]{0,8}(?:超限|过长)",
    "(?:conversation|chat|history) (?:is |has (?:become |grown )?)?too (?:long|large)",
    r"must have less than \d+ tokens",
    r"n_keep[^\n]{0,20}>=? ?n_ctx",
    r"current length is \d+ while limit is \d+",
    "must be less than max_seq_len",
    r"cannot truncate to \d+, required \d+",
    "exceeds the (?:maximum|max|configured) (?:allowed )?(?:input |prompt )?(?:length|limit of"
    r" \d+ tokens)",
    r"(?:exceed\w*|over)[^\n]{0,20}limit of \d+ tokens",
    r"token count[^\n]{0,40}exceed",
    r"too many (?:input |prompt )?tokens(?! per| used|, please wait|\. please"
    r" wait)[^\n]{0,60}(?:max|limit|exceed|context|\d)",
    r"sequence length[^\n]{0,60}(?:longer|exceed|larger|greater)",
    r"prompt contains \d+ tokens",
    "input text is too (?:long|large)",
    r"too (?:big|large|long) (?:compared to|for) (?:the )?kv (?:size|cache)",
    r"max(?:imum)? tokens of \d+ exceeded",
)

INPUT_PLUS_OUTPUT = any_of(
    r"max_tokens \+ (?:the )?(?:input|prompt)|(?:input|prompt) tokens \+ max_",
    r"tokens? \+ max_(?:new_)?tokens[^\n]{0,30}must be <?=",
    r"input length and max_tokens exceed context limit: ?\d+ \+ \d+ > \d+",
    r"maximum context length is \d+ tokens[^\n]{0,80}\(?\d+ (?:in the messages|of text input|in"
    r" your prompt|from the input messages|of input|in the prompt)[^\n]{0,60}\d+ (?:in the"
    " completion|in the output|for the completion|of tool input)",
    r"max_tokens[^\n]{0,30}(?:is )?too large: ?\d+\.[^\n]{0,80}maximum context length is \d+"
    r" tokens and your request has \d+ input tokens",
)

OUTPUT_CAP = any_of(
    r"max_(?:completion_|output_|new_)?tokens: ?\d+ ?> ?\d+",
    r"max_(?:completion_|output_|new_)?tokens[^\n]{0,20}(?:is )?too large: ?\d+\. this model"
    r" supports at most \d+",
    r"max_?(?:completion_?|output_?|new_?)?tokens[^\n]{0,60}(?:must be (?:less than|<=?|between"
    "|at most|smaller)|cannot (?:be (?:greater|larger|more)|exceed)|should be|less than or equal"
    "|exceeds? (?:the )?(?:max|model|limit|allowed))",
    "maximum (?:allowed )?number of output tokens",
    r"maximum tokens you requested exceeds the model limit of \d+",
    "invalid max_tokens value, the valid range",
    "range of max_tokens should be",
    r"supports at most \d+ completion tokens",
    r"(?:output|completion) tokens? (?:limit|cap)[^\n]{0,30}(?:exceed|at most|maximum)",
)

IMAGE = any_of(
    r"image[^\n]{0,40}exceed\w*[^\n]{0,40}(?:\d+ ?(?:mb|kb|bytes|pixels|px)|max|limit|allowed)",
    "image dimensions? exceed",
    r"image (?:length|width|height)[^\n]{0,30}not meet",
    r"image[^\n]{0,60}(?:is|are|was) too (?:large|big)",
    r"image[^\n]{0,30}too (?:large|big)\b",
    r"image[^\n]{0,30}(?:size|resolution|dimension|width|height|pixels?)\w*[^\n]{0,50}(?:exceed"
    "|larger than|too (?:large|big)|greater than|over the|must (?:be|not)|should be (?:less"
    "|under|below|within)|cannot|at most)",
    r"(?:exceed|larger than)[^\n]{0,40}(?:max\w* )?(?:allowed )?(?:image (?:size|dimension"
    "|resolution)|total pixels)",
    r"maximum (?:allowed )?(?:image|total pixels)[^\n]{0,20}(?:size|dimension|\d|exceed)",
)

PAYLOAD = any_of(
    r"(?:request|entity|payload|body|content)[^\n]{0,20} (?:entity |body |payload )?(?:is )?too"
    r" (?:large|big)\b(?! for | on )",
    r"(?:payload|request|body|message|content)[^\n]{0,30} (?:size|length) (?:exceeds?|exceeded|is"
    " over|larger|limit)",
    "exceeds? the maximum (?:allowed )?(?:number of bytes|request size|body size|payload size|size)",
    r"(?:request|body|payload)[^\n]{0,30}exceed\w*[^\n]{0,40}(?:bytes|\bmb\b|\bmib\b|size)",
    "length limit exceeded",
    r"maximum (?:request|body|payload|content)[^\n]{0,12} ?(?:size|length)[^\n]{0,30}(?:exceed|\d)",
    "failed to buffer the request body",
    r"total (?:request )?size[^\n]{0,30}exceed",
    "max(?:imum)? bytes (?:to|per|of)",
)
