"""Wordings about the service itself: models, throttling, capacity, credentials, request form, transport.

Same form and sources as `wording`.
"""

from __future__ import annotations

from hermes.policy.rules import any_of

MODEL = any_of(
    r"\bmodels?\b:? ?[\w./:@#+~ -]{0,80}(?:does not exist|doesnt exist|not exist|not found|was not found|is not found|could not be found|cannot be found)",
    r"\bmodel\b[^\n]{0,80} (?:does not exist|doesnt exist|not exist|not found|was not found|is not found)(?:[ ,.:;]|$)",
    r"(?:is not|not|isnt) a valid model(?: id| name| identifier)?", r"model identifier is invalid",
    r"(?:unknown|invalid|unrecognized|unsupported|no such) model\b(?!s? (?:output|response|argument|parameter))(?: name| id)?",
    r"no (?:allowed )?endpoints found for (?!.*support)", r"no such deployment", r"deployment[^\n]{0,60}(?:does not exist|not found)",
    r"\bmodel\b[^\n]{0,80}(?:is|are|was|has been) (?:not |no longer |un)(?:supported|available|accessible|enabled|offered|served)\b(?! (?:right now|at the moment|temporarily|currently))",
    r"(?:requested )?model[^\n]{0,40}is not supported", r"model (?:is |was )?unloaded", r"could not find[^\n]{0,20}\bmodel", r"model[^\n]{0,120}not servable", r"no models? (?:is |are )?(?:currently )?loaded",
    r"model[^\n]{0,60}(?:has been |is |was )(?:deprecated|decommissioned|retired|sunset|discontinued|shut ?down|removed)",
    r"not found for api version", r"not supported for generatecontent", r"(?:reached|past) (?:the )?end of (?:its )?life",
    r"(?:dont|do not|does not|no|not) have (?:access|permission)[^\n]{0,20} to (?:the )?(?:requested |specified )?model",
    r"(?:no|not have|without) access to (?:the )?model", r"access to (?:the )?model[^\n]{0,60}(?:denied|not|restricted)",
    r"verified to use the model", r"on-demand throughput (?:isnt|is not) supported", r"model[^\n]{0,30}not exist\b",
    r"^model: ?[\w.:/-]+$", r"no available channel for model", r"(?:failed|unable|could not|error) (?:to )?load(?:ing)? (?:the )?model\b",
    r"try pulling it first", r"model[^\n]{0,60}is not (?:available|supported|included|part)[^\n]{0,30}(?:plan|tier|subscription|account|region|codex)",
    r"模型[^\n]{0,12}不存在", r"当前分组[^\n]{0,30}无可用渠道", r"there (?:are|is) no (?:healthy )?(?:deployment|model)s? (?:for|named|with)",
    r"not allowed to (?:access|use|sample from) (?:this )?model", r"model not (?:available|allowed|enabled|loaded|supported)",
    r"not (?:a )?(?:chat|text|completion) model", r"model[^\n]{0,60} not (?:available|accessible) in (?:your|this) (?:region|project)",
)

PER_TIME = any_of(
    r"(?:rate|quota|limit|exceed|throttl|reached)[^\n]{0,120}(?:tokens?|requests?|calls?|queries) ?(?:per |/ ?)(?:\w+ )?(?:min|day|hour|month|second)",
    r"(?:reached|exceeded|limit|max)[^\n]{0,60}\b(?:rpm|tpm|tpd|rpd|qps)\b", r"too many tokens, please wait", r"online_prediction_\w+_per_\w+",
    r"exceeded token rate limit", r"(?:daily|hourly|weekly|minute) rate limit", r"service tier capacity exceeded", r"would exceed (?:your|the)[^\n]{0,40}rate limit",
)

USAGE_WINDOW = any_of(
    r"usage limit[^\n]{0,40}(?:exceed|reached|hit|try again|reset)", r"\d[- ]hour (?:usage )?limit (?:reached|exceeded|hit)", r"exceeds? the service quota", r"(?:exceeded|reached|hit|used)[^\n]{0,40}(?:usage limit|token usage|\d+[- ]hour (?:\w+ )?limit|weekly (?:\w+ )?limit|daily (?:\w+ )?limit|session limit)",
    r"(?:limit|quota|usage)\b[^\n]{0,30} (?:will )?resets? (?:at|in|on|after)", r"free-models-per-day", r"(?:daily|weekly|hourly)[^\n]{0,20}(?:limit|quota)[^\n]{0,30}(?:reached|exceeded|exhausted)",
    r"(?:已达到|达到|超过)[^\n]{0,16}使用上限", r"hit your (?:usage |\w+ )?limit",
)

THROTTLE = any_of(
    r"^\W*rate[- ]?limit(?:ed)?\W*$", r"due to rate[- ]?limiting",
    r"rate[- ]?limit(?:ed|s|ing)?\b[^\n]{0,60}(?:exceed|reached|hit|try again|please|retry|wait|error|quota|per |upstream)",
    r"(?:exceed\w*|reached|hit|over)[^\n]{0,60}\b(?:rate|request|rpm|tpm|tpd|rpd|concurren\w*|token rate|call rate|throughput)[ -]?(?:limit|quota|rate limit)",
    r"(?:been|are|is|being|temporarily) (?:rate[- ]?limited|throttled)", r"too many (?:concurrent )?(?:requests|tokens, please wait|connections|calls)",
    r"tokens? per (?:min|day|hour|month|second)", r"requests? per (?:min|day|hour|second)", r"\b(?:rpm|tpm|tpd|rpd)\b[:) ]",
    r"quota exceeded for (?:metric|quota|[\w.]+\.googleapis)", r"resource (?:has been )?exhausted",
    r"temporarily limiting requests", r"usage limit[^\n]{0,40}(?:exceed|reached|hit|try again|reset)",
    r"(?:exceeded|reached|hit|used)[^\n]{0,40}(?:usage limit|token usage|5[- ]hour limit|weekly limit|daily limit|session limit|limit for)",
    r"limit (?:will )?resets? (?:at|in|on)", r"quota will reset", r"(?:exhausted|exceeded) your (?:capacity|quota|daily|weekly)",
    r"concurren(?:t|cy)[^\n]{0,40}(?:limit|exceed|too many|reached)", r"request was throttled|throttlingexception|requests? throttl",
    r"free-models-per-(?:day|min)", r"allocated quota exceeded", r"(?:daily|weekly|hourly|minute)[^\n]{0,20}(?:limit|quota)[^\n]{0,30}(?:reached|exceeded|exhausted)",
    r"请求(?:过于频繁|数?过多|频率)", r"(?:速率|频率)限制", r"(?:达到|超过)[^\n]{0,12}(?:使用上限|速率|并发)", r"slow down\b[^\n]{0,40}(?:request|rate|try)",
    r"please (?:wait|slow|retry)[^\n]{0,40}(?:before (?:trying|sending|making)|your requests)[^\n]{0,30}", r"no deployments available[^\n]{0,60}try again in",
    r"would exceed (?:your|the)[^\n]{0,40}rate limit", r"request limit (?:reached|exceeded)", r"exceeded[^\n]{0,20}limit of concurrent",
    r"(?:frequency|burst|call) limit", r"hit your (?:usage )?limit", r"increased too quickly",
)

MEMORY = any_of(r"memory (?:guard|ceiling|limit)[^\n]{0,160}(?:peak|ceiling|would require|exceed)", r"(?:cuda|gpu|hip|metal|device)[^\n]{0,30}out of memory",
    r"not enough (?:gpu |free |available )?(?:memory|vram)", r"requires more system memory",
)

LOADING = any_of(
    r"loading model|model (?:is )?(?:still |currently )?(?:being )?load(?:ing|ed into)", r"model[^\n]{0,60}is (?:currently |still )?(?:loading|warming|starting|not ready)", r"scal(?:ing|ed) (?:up|from zero)", r"model loading",
)

CAPACITY = any_of(
    r"\b(?:is|are|was|be|currently|temporarily)\b[^\n]{0,40}\boverload(?:ed)?(?![-\w])", r"\b(?:model|engine|server|service|system|provider|backend)s? (?:service )?overload(?:ed)?(?![-\w])",
    r"^overloaded(?:[ .!]|$)|\b529 overloaded|^overloaded_error", r"\bat (?:full |maximum )?capacity\b(?! of \d)",
    r"(?:experiencing|under|due to|because of) (?:very |extremely |unusually )?(?:high|heavy) (?:demand|load|traffic|volume)",
    r"(?:server|service|model|system|backend|provider)s? (?:is |are )?(?:currently |temporarily |too )*busy", r"server busy",
    r"no (?:available |free )?(?:capacity|workers?|instances?|slots?|replicas?|gpus?)(?: is| are)?(?: currently)? ?(?:available|left|free|for|to serve)?\b[^\n]{0,60}(?:available|model|right now|moment|retry)",
    r"(?:not enough|insufficient|exceeded|lack of|limited|reached)[^\n]{0,30} (?:capacity|compute|resources?)\b(?! on this model)",
    r"first token before the given deadline",
    r"(?:local|worker)[^\n]{0,20} total request limit reached", r"(?:queue|pending requests?)[^\n]{0,20}(?:is )?(?:full|exceeded|too long)",
    r"no healthy upstream", r"capacity (?:exceeded|constraints?|limits?)\b",
    r"负载(?:已|过)|系统繁忙|服务(?:繁忙|过载)|访问量过大", r"temporarily unavailable due to[^\n]{0,30}(?:load|demand|capacity)", r"model busy", r"too busy",
)

AUTH = any_of(
    r"(?:invalid|incorrect|wrong|bad|missing|malformed|expired|unknown|revoked)[^\n]{0,20}(?:api[- _]?key|x-api-key|access token|bearer token|auth\w* token|credentials?|authorization header|authentication token|token signature)",
    r"(?:api[- _]?key|x-api-key|bearer token|access token|authorization header|credentials?|oauth token|security token|session)\b[^\n]{0,60}"
    r"(?:is |was |are |has |have |been )*(?:invalid|not valid|not found|incorrect|expired|missing|required|revoked|rejected|malformed|disabled|deleted|ended|not provided|not set)",
    r"(?:no|not) (?:api[- _]?key|auth(?:entication|orization)? (?:credentials?|header)|authentication)[^\n]{0,20}(?:found|provided|passed|supplied|set|included)",
    r"(?:you )?didnt provide an api key", r"authentication (?:fails|failed|error|required|parameter)", r"could not resolve authentication",
    r"(?:token|oauth)[^\n]{0,40}(?:does not meet scope|expired|insufficient (?:authentication )?scope)", r"insufficient (?:authentication )?scopes?",
    r"missing scopes?", r"insufficient permissions? for this operation", r"please (?:log ?in|sign in|re-?authenticate|run /login)",
    r"(?:login|log-in) fail", r"^(?:error: ?)?(?:401 ?)?\W*unauthorized\W*$", r"not authenticated|unauthenticated", r"user not found\.?$",
    r"no connected db", r"caller does not have permission", r"permission[^\n]{0,60}denied on resource", r"unregistered callers",
    r"refresh token[^\n]{0,60}(?:expired|invalid|used|revoked|failed|not found)", r"failed to refresh[^\n]{0,20}token",
    r"(?:无效的?|错误的?)(?:令牌|密钥|api)|令牌(?:无效|已过期|验证失败)", r"(?:unable to|could not)[^\n]{0,16} (?:locate|load|find|determine)[^\n]{0,20}credentials", r"not authorized to (?:perform|invoke|access)",
    r"provide (?:a )?valid (?:api key|credentials|token)", r"api key[^\n]{0,20}(?:reported|not have)", r"does not have (?:the )?(?:required|necessary) (?:scope|permission|role)s?",
    r"secure token included in the request is (?:invalid|expired)", r"api keys are not supported by this api",
)

FORMAT_STRICT = any_of(
    r"(?:unknown|unrecognized|unsupported) (?:request )?(?:parameter|argument|field|property|keyword|value)s?\b",
    r"extra (?:inputs|fields) (?:are )?not (?:permitted|allowed)", r"tool_use ids were found without", r"unexpected tool_use_id found",
    r"tool_use[^\n]{0,60}without[^\n]{0,20}tool_result", r"tool_call_ids? did not have response", r"messages with role tool must be",
    r"no tool (?:call|output) found", r"no endpoints found that (?:can )?(?:support|handle)", r"string does not match pattern",
    r"(?:does not|doesnt|do not|dont) support (?:tools?|tool|image|vision|function|cache|system|streaming|multimodal|assistant|developer|response_format|parameters|reasoning|thinking|prompt)",
    r"supports? at most \d+ images?|at most \d+ images?", r"too many images", r"without its required following item", r"invalid schema for (?:function|response|tool)",
    r"(?:image|media|video|audio|file) input is not (?:supported|enabled)|image_url is only supported", r"not accessible via the[^\n]{0,40}endpoint",
    r"is not supported (?:with|by|for|when using|in) this model", r"array too long\. expected", r"requires --(?:enable-auto-tool-choice|jinja)", r"invalid json payload received",
    r"roles? must alternate", r"function call turn comes", r"text content blocks must be non-empty",
)

FORMAT = any_of(
    r"(?:unknown|unrecognized|unsupported|unexpected|invalid|extraneous|extra|missing|duplicate) (?:required )?(?:request )?(?:parameter|argument|field|key|property|keyword|input|name|value|role|content type|type)s?\b(?! api)",
    r"extra (?:inputs|fields) (?:are )?not (?:permitted|allowed)", r"tool_use ids were found without", r"tool_use[^\n]{0,60}tool_result",
    r"tool_call_ids? did not have response", r"messages with role tool must be", r"tool_calls? must be followed", r"roles? must alternate",
    r"no tool (?:call|output) found", r"invalid schema for (?:function|response|tool)", r"does not match (?:the )?(?:pattern|expected|schema)",
    r"string does not match pattern", r"(?:input should|field required|value is not a valid|value error,)", r"must (?:be|contain|have|start|end) (?:a |an |at least |one of |non-empty|unique|with |alphanumeric)",
    r"(?:content|text|messages?|blocks?|field)\W[^\n]{0,40}(?:must be|cannot be|may not be|should not be|should be) (?:non-empty|empty|null|blank)",
    r"at least one message is required", r"no endpoints found that (?:can )?(?:support|handle)", r"(?:does not|doesnt|do not|not) support (?:tools?|tool use|tool calling|images?|image input|vision|function|cache|system|streaming|multimodal|assistant|developer|response_format|parameters|reasoning|thinking|prompt caching)",
    r"supports? at most \d+ images?", r"at most \d+ images?", r"too many images", r"(?:is|are) not supported (?:with|by|for|when|in) (?:this|the|with) (?:model|endpoint|request|parameter)",
    r"(?:unsupported|invalid|not supported)[^\n]{0,30}(?:image|media|file|mime)[^\n]{0,12}(?:type|format|url|data)?", r"could not process image", r"function call turn", r"function response parts",
    r"invalid json (?:payload|body|in request)", r"malformed input request", r"request (?:body )?(?:is )?(?:malformed|not valid json)", r"(?:invalid|unknown) (?:name|value|type) (?:for|at|:)",
    r"requires --enable-auto-tool-choice", r"cannot both be specified", r"prefill", r"is (?:not permitted|not allowed) (?:for|with|in|when)",
    r"request contains an invalid argument", r"validation error", r"(?:conversation|message) (?:roles|history)[^\n]{0,30}(?:alternate|invalid|must)", r"(?:invalid|incorrect) (?:request|message|tool|function|role|type|format|input|arguments?|parameters?)\b",
    r"array too long\. expected", r"failed to deserialize", r"(?:tools?|functions?)(?:\[\d+\]|\.\d+)\.\w+", r"messages?(?:\[\d+\]|\.\d+)[.:]", r"without its required following item",
    r"function calling is not enabled", r"duplicate (?:item|tool|id)", r"unable to parse|cannot parse|failed to parse", r"not accessible via the[^\n]{0,40}endpoint",
)

LOCAL_TRANSPORT = any_of(
    r"peer closed connection", r"error sending request for url", r"incomplete chunked read", r"connection (?:was |has been |is )?(?:reset|closed|aborted|lost|broken|terminated|dropped|interrupted|refused|error)",
    r"(?:stream|server|client|upstream)[^\n]{0,20}disconnect", r"stream (?:closed|ended|error|was reset|interrupted)[^\n]{0,40}(?:before|without|unexpectedly|premature|disconnect|cancel|internal)",
    r"econn(?:reset|refused|aborted)|etimedout|enotfound|eai_again|epipe|und_err_\w+|ehostunreach|enetunreach", r"socket (?:hang up|connection was closed|closed|timeout)",
    r"(?:name resolution|name or service not known|nodename nor servname|getaddrinfo|dns (?:lookup|resolution|error))", r"premature(?:ly)? (?:close|closed|end)",
    r"(?:fetch failed|network (?:error|connection lost|is unreachable)|cannot connect to host|failed to (?:connect|establish)|unable to connect|max retries exceeded with url|no route to host)",
    r"unexpected eof|\beof\b (?:occurred|while|reached)|read: connection|broken pipe|goaway|http/2 stream", r"^\W*(?:\w*error: )?(?:terminated|aborted|request was aborted\.?)\W*$", r"request was aborted", r"before (?:response\.completed|completion|message_stop|\[done\])", r"remote end closed", r"all connection attempts failed",
)

TIMED_OUT = any_of(
    r"\btimed[ -]?out\b", r"^\W*time-?out\W*$", r"\b(?:read|request|connect|connection|gateway|idle|upstream|stream|response|inactivity|operation|server|api|network|socket) ?time-?out", r"deadline[ _]?exceeded|deadline expired",
    r"time-?out (?:error|occurred|exceeded|while|waiting|after|of \d|reached|awaiting)", r"(?:no (?:data|response|bytes|chunk|event)s?|nothing)[^\n]{0,30}(?:received|sent)?[^\n]{0,20}(?:for|within|in) \d+ ?(?:s|ms|seconds)", r"took too long", r"didnt respond in time|did not respond (?:in time|within)", r"context deadline|request timeout|gateway time-?out|a timeout occurred",
)

CERTIFICATE = any_of(
    r"certificate[_ ]verify[_ ]failed", r"certificate (?:has expired|is not valid|verify failed|not trusted|hostname mismatch)", r"self[- ]signed certificate", r"unable to (?:get local issuer|verify the first) ?certificate?", r"hostname mismatch, certificate", r"invalid ssl certificate",
)

SERVER = any_of(
    r"(?:internal|unexpected)[ _](?:server[ _])?(?:error|failure|exception)", r"error occurred while processing your request", r"(?:had|encountered) an (?:unexpected |internal )?error (?:while )?process", r"an unexpected error (?:occurred|has occurred)",
    r"bad gateway", r"origin web server returned an invalid", r"something went wrong", r"server_error", r"the server encountered", r"upstream (?:error|server error|provider error)", r"unknown error, \d+ in|system error\b", r"(?:internal|server)[- ]side (?:issue|error)",
)

_EMPTY = (
    r"error|bad request|invalid request|an? (?:unknown )?error occurred|unknown error|provider returned error|providerbizerror|request failed|api error|llm error|http|none|null|"
    r"this request is not valid\\. check the model name and other parameters|additional info|"
    r"badrequesterror|error code|status code|no body|client error|upstream error|badrequest|invalid_request_error|the request was invalid"
)
VACUOUS_ALL = any_of(rf"\A(?:[^\w]*(?:(?:{_EMPTY}|\d{{3}})\b)?[^\w]*){{0,12}}\Z")
"""The whole text says nothing."""
