"""Wordings about the service itself: models, throttling, capacity, credentials, request form, transport.

Same form and sources as `wording`.
"""

from __future__ import annotations

from hermes.policy.rules import any_of

MODEL = any_of(
    r"\bmodel (?:is )?(?:disabled|access denied)|does not work with the specified model",
    r"plan does not (?:yet )?include access to",
    r"\bmodels?\b:? ?[\w./:@#+~ -]{0,80}(?:does not exist|doesnt exist|not exist|not found|was"
    " not found|is not found|could not be found|cannot be found)",
    r"\bmodel\b[^\n]{0,80} (?:does not exist|doesnt exist|not exist|not found|was not found|is"
    " not found)(?:[ ,.:;]|$)",
    "(?:is not|not|isnt) a valid model(?: id| name| identifier)?",
    "model identifier is invalid",
    r"(?:unknown|invalid|unrecognized|unsupported|no such) model\b(?!s? (?:output|response"
    "|argument|parameter))(?: name| id)?",
    "no (?:allowed )?endpoints found for (?!.*support)",
    "no such deployment|llm provider not provided|no endpoints? (?:is |are )?available for (?:this|the) model",
    r"deployment[^\n]{0,60}(?:does not exist|not found)",
    r"\bmodel\b[^\n]{0,80}(?:is|are|was|has been) (?:not |no longer |un)(?:supported|available"
    r"|accessible|enabled|offered|served)\b(?! (?:right now|at the moment|temporarily|currently))",
    r"(?:requested )?model[^\n]{0,40}is not supported",
    "model (?:is |was )?unloaded",
    r"could not find[^\n]{0,20}\bmodel",
    r"model[^\n]{0,120}not servable",
    "no models? (?:is |are )?(?:currently )?loaded",
    r"model[^\n]{0,60}(?:has been |is |was )(?:deprecated|decommissioned|retired|sunset"
    "|discontinued|shut ?down|removed)",
    "not found for api version",
    "not supported for generatecontent",
    "(?:reached|past) (?:the )?end of (?:its )?life",
    r"(?:dont|do not|does not|no|not) have (?:access|permission)[^\n]{0,20} to (?:the"
    " )?(?:requested |specified )?model",
    "(?:no|not have|without) access to (?:the )?model",
    r"access to (?:the )?model[^\n]{0,60}(?:denied|not|restricted)",
    "verified to use the model",
    "on-demand throughput (?:isnt|is not) supported|support on-demand throughput",
    r"endpoint for [^\n]{0,80}is not running",
    r"model[^\n]{0,30}not exist\b",
    r"^model: ?[\w.:/-]+$",
    "no available channel for model",
    r"(?:failed|unable|could not|error) (?:to )?load(?:ing)? (?:the )?model\b",
    "try pulling it first",
    r"model[^\n]{0,60}is not (?:available|supported|included|part)[^\n]{0,30}(?:plan|tier"
    "|subscription|account|region|codex)",
    r"模型[^\n]{0,12}不存在",
    r"当前分组[^\n]{0,30}无可用渠道",
    "there (?:are|is) no (?:healthy )?(?:deployment|model)s? (?:for|named|with)",
    "not allowed to (?:access|use|sample from) (?:this )?model",
    "model not (?:available|allowed|enabled|loaded|supported)",
    "not (?:a )?(?:chat|text|completion) model",
    r"model[^\n]{0,60} not (?:available|accessible) in (?:your|this) (?:region|project)",
)

PER_TIME = any_of(
    r"(?:rate|quota|limit|exceed|throttl|reached)[^\n]{0,120}(?:tokens?|requests?|calls?|queries)"
    r" ?(?:per |/ ?)(?:\w+ )?(?:min|day|hour|month|second)",
    r"(?:reached|exceeded|limit|max)[^\n]{0,60}\b(?:rpm|tpm|tpd|rpd|qps)\b",
    "too many tokens, please wait",
    r"online_prediction_\w+_per_\w+",
    "exceeded token rate limit",
    "(?:daily|hourly|weekly|minute) rate limit",
    "service tier capacity exceeded",
    r"would exceed (?:your|the)[^\n]{0,40}rate limit",
)

USAGE_WINDOW = any_of(
    r"(?:reached|exceeded|hit|used)[^\n]{0,20}\b(?:daily|weekly|hourly)\b[^\n]{0,40}(?:limit|quota)",
    r"usage limit[^\n]{0,40}(?:exceed|reached|hit|try again|reset)",
    r"\d[- ]hour (?:usage )?limit (?:reached|exceeded|hit)",
    "exceeds? the service quota",
    r"(?:exceeded|reached|hit|used)[^\n]{0,40}(?:usage limit|token usage|\d+[- ]hour (?:\w+"
    r" )?limit|weekly (?:\w+ )?limit|daily (?:\w+ )?limit|session limit)",
    r"(?:limit|quota|usage)\b[^\n]{0,30} (?:will )?resets? (?:(?:at|in|on|after)\b|\d|[a-z]{3} \d)",
    "free-models-per-day",
    r"(?:daily|weekly|hourly)[^\n]{0,20}(?:limit|quota)[^\n]{0,30}(?:reached|exceeded|exhausted)",
    r"(?:已达到|达到|超过)[^\n]{0,16}使用上限",
    r"hit your (?:usage |\w+ )?limit",
)

THROTTLE = any_of(
    r"^\W*rate[- ]?limit(?:ed)?\W*$",
    "due to rate[- ]?limiting",
    r"rate[- ]?limit(?:ed|s|ing)?\b[^\n]{0,60}(?:exceed|reached|hit|try again|please|retry|wait"
    "|error|quota|per |upstream)",
    r"(?:exceed\w*|reached|hit|over)[^\n]{0,60}\b(?:rate|request|rpm|tpm|tpd|rpd|concurren\w*"
    "|token rate|call rate|throughput)[ -]?(?:limit|quota|rate limit)",
    "(?:been|are|is|being|temporarily) (?:rate[- ]?limited|throttled)",
    "too many (?:concurrent )?(?:requests|tokens, please wait|connections|calls)",
    "tokens? per (?:min|day|hour|month|second)",
    "requests? per (?:min|day|hour|second)",
    r"\b(?:rpm|tpm|tpd|rpd)\b[:) ]",
    r"quota exceeded for (?:metric|quota|[\w.]+\.googleapis)",
    "resource (?:has been )?exhausted",
    "temporarily limiting requests",
    r"usage limit[^\n]{0,40}(?:exceed|reached|hit|try again|reset)",
    r"(?:exceeded|reached|hit|used)[^\n]{0,40}(?:usage limit|token usage|5[- ]hour limit|weekly"
    " limit|daily limit|session limit|limit for)",
    "limit (?:will )?resets? (?:at|in|on)",
    "quota will reset",
    "(?:exhausted|exceeded) your (?:capacity|quota|daily|weekly)",
    r"concurren(?:t|cy)[^\n]{0,40}(?:limit|exceed|too many|reached)",
    "request was throttled|throttlingexception|requests? throttl",
    "free-models-per-(?:day|min)",
    "allocated quota exceeded",
    r"(?:daily|weekly|hourly|minute)[^\n]{0,20}(?:limit|quota)[^\n]{0,30}(?:reached|exceeded"
    "|exhausted)",
    "请求(?:过于频繁|数?过多|频率)",
    "(?:速率|频率)限制",
    r"(?:达到|超过)[^\n]{0,12}(?:使用上限|速率|并发)",
    r"slow down\b[^\n]{0,40}(?:request|rate|try)",
    r"please (?:wait|slow|retry)[^\n]{0,40}(?:before (?:trying|sending|making)|your"
    r" requests)[^\n]{0,30}",
    r"no deployments available[^\n]{0,60}try again in",
    r"would exceed (?:your|the)[^\n]{0,40}rate limit",
    "request limit (?:reached|exceeded)",
    r"exceeded[^\n]{0,20}limit of concurrent",
    "(?:frequency|burst|call) limit",
    "hit your (?:usage )?limit",
    "increased too quickly",
)

MEMORY = any_of(
    r"memory (?:guard|ceiling|limit)[^\n]{0,160}(?:peak|ceiling|would require|exceed)",
    r"(?:cuda|gpu|hip|metal|device)[^\n]{0,30}out of memory",
    "not enough (?:gpu |free |available )?(?:memory|vram)",
    "requires more system memory",
)

LOADING = any_of(
    "loading model|model (?:is )?(?:still |currently )?(?:being )?load(?:ing|ed into)",
    r"model[^\n]{0,60}is (?:currently |still )?(?:loading|warming|starting|not ready)",
    "scal(?:ing|ed) (?:up|from zero)",
    "model loading",
)

CAPACITY = any_of(
    r"\b(?:is|are|was|be|currently|temporarily)\b[^\n]{0,40}\boverload(?:ed)?(?![-\w])",
    r"\b(?:model|engine|server|service|system|provider|backend)s? (?:service"
    r" )?overload(?:ed)?(?![-\w])",
    r"^overloaded(?:[ .!]|$)|\b529 overloaded|^overloaded_error",
    r"\bat (?:full |maximum )?capacity\b(?! of \d)",
    "(?:experiencing|under|due to|because of) (?:very |extremely |unusually )?(?:high|heavy)"
    " (?:demand|load|traffic|volume)",
    "(?:server|service|model|system|backend|provider)s? (?:is |are )?(?:currently |temporarily |too )*busy",
    "server busy",
    "no (?:available |free )?(?:capacity|workers?|instances?|slots?|replicas?|gpus?)(?: is|"
    r" are)?(?: currently)? ?(?:available|left|free|for|to serve)?\b[^\n]{0,60}(?:available|model"
    "|right now|moment|retry)",
    r"(?:not enough|insufficient|exceeded|lack of|limited|reached)[^\n]{0,30} (?:capacity|compute"
    r"|resources?)\b(?! on this model)",
    "first token before the given deadline",
    r"(?:local|worker)[^\n]{0,20} total request limit reached",
    r"(?:queue|pending requests?)[^\n]{0,20}(?:is )?(?:full|exceeded|too long)",
    "no healthy upstream",
    r"capacity (?:temporarily )?(?:exceeded|constraints?|limits?)\b",
    "负载(?:已|过)|系统繁忙|服务(?:繁忙|过载)|访问量过大",
    r"temporarily unavailable due to[^\n]{0,30}(?:load|demand|capacity)",
    "model busy",
    r"\bdegraded\b[^\n]{0,30}cannot be invoked",
    "too busy",
)

AUTH = any_of(
    "(?:invalid|incorrect|wrong|bad|missing|malformed|expired|unknown"
    r"|revoked)[^\n]{0,20}(?:api[- _]?key|x-api-key|access token|bearer token|auth\w* token"
    "|credentials?|authorization header|authentication token|token signature)",
    "(?:api[- _]?key|x-api-key|bearer token|access token|authorization header|credentials?|oauth"
    r" token|security token|session)\b[^\n]{0,60}(?:is |was |are |has |have |been )*(?:invalid"
    "|not valid|not found|incorrect|expired|missing|required|revoked|rejected|malformed|disabled"
    "|deleted|ended|not provided|not set)",
    "(?:no|not) (?:api[- _]?key|auth(?:entication|orization)? (?:credentials?|header)"
    r"|authentication)[^\n]{0,20}(?:found|provided|passed|supplied|set|included)",
    "(?:you )?didnt provide an api key",
    "authentication (?:fails|failed|error|required|parameter)",
    "could not resolve authentication",
    r"(?:token|oauth)[^\n]{0,40}(?:does not meet scope|expired|insufficient (?:authentication"
    " )?scope)",
    "insufficient (?:authentication )?scopes?",
    "missing scopes?",
    "insufficient permissions? for this operation",
    "please (?:log ?in|sign in|re-?authenticate|run /login)",
    "(?:login|log-in) fail",
    r"^(?:error: ?)?(?:401 ?)?\W*unauthorized\W*$",
    "not authenticated|unauthenticated",
    r"user not found\.?$",
    "no connected db",
    "caller does not have permission",
    r"permission[^\n]{0,60}denied on resource",
    "unregistered callers",
    r"refresh token[^\n]{0,60}(?:expired|invalid|used|revoked|failed|not found)",
    r"failed to refresh[^\n]{0,20}token|token refresh (?:has )?failed",
    "(?:无效的?|错误的?)(?:令牌|密钥|api)|令牌(?:无效|已过期|验证失败)",
    r"(?:unable to|could not)[^\n]{0,16} (?:locate|load|find|determine)[^\n]{0,20}credentials",
    "not authorized to (?:perform|invoke|access)",
    "provide (?:a )?valid (?:api key|credentials|token)",
    r"api key[^\n]{0,20}(?:reported|not have)",
    "does not have (?:the )?(?:required|necessary) (?:scope|permission|role)s?",
    "secure token included in the request is (?:invalid|expired)",
    "api keys are not supported by this api",
)

TOOL_IMAGES = any_of(
    r"image (?:urls?|content|blocks?)[^\n]{0,30}only allowed for messages with role user",
    r"(?:tool|function)[- _]?(?:messages?|results?|role|outputs?)[^\n]{0,60}(?:not|cannot"
    r"|only)[^\n]{0,30}\bimages?\b",
    r"\bimages?\b[^\n]{0,40}(?:not (?:supported|allowed)|cannot be)[^\n]{0,30}(?:tool|function)[- "
    r"_]?(?:messages?|results?|role)",
)

NO_IMAGES = any_of(
    r"(?:does not|doesnt|do not|not|cannot) support (?:images?|image input|vision|multimodal)",
    r"no endpoints found that support image",
    r"(?:image|vision) input is not (?:supported|enabled)|image_url is only supported",
)

BAD_IMAGE = any_of(
    "could not process (?:input )?image",
    "unable to process (?:input )?image",
    "uploaded an unsupported image",
    "image cannot be empty",
    "unsupported mime type image",
    "media_type: input should be image",
    "but the image appears to be an? image",
    r"(?:failed|unable) to (?:decode|read|load|parse) (?:the |input )?image",
)

IMAGE_COUNT = any_of(r"at most \d+ image", "too many images")

FORMAT_STRICT = any_of(
    r"\bloc: ?[(\[]body\b|\byou should pass [^\n]{0,120}\bfield\b",
    r"json\.exception\.|failed to parse (?:tools|messages|input)\b|error rendering prompt|\bjinja\b"
    r"|chat template",
    r"\bat row \d+, column \d+",
    "(?:unknown|unrecognized|unsupported) (?:request )?(?:parameter|argument|field|property"
    r"|keyword|value)s?\b",
    "extra (?:inputs|fields) (?:are )?not (?:permitted|allowed)",
    "tool_use ids were found without",
    "unexpected tool_use_id found",
    r"tool_use[^\n]{0,60}without[^\n]{0,20}tool_result",
    "tool_call_ids? did not have response",
    "messages with role tool must be",
    "no tool (?:call|output) found",
    "no endpoints found that (?:can )?(?:support|handle)",
    "string does not match pattern",
    "(?:does not|doesnt|do not|dont) support (?:tools?|tool|image|vision|function|cache|system"
    "|streaming|multimodal|assistant|developer|response_format|parameters|reasoning|thinking"
    "|prompt)",
    r"supports? at most \d+ images?|at most \d+ images?",
    "too many images",
    "without its required following item|items are not persisted when",
    "invalid schema for (?:function|response|tool)",
    "(?:image|media|video|audio|file) input is not (?:supported|enabled)|image_url is only supported",
    r"not accessible via the[^\n]{0,40}endpoint|\buse (?:the )?\S{1,60} (?:api|endpoint) instead",
    "is not supported (?:with|by|for|when using|in) this model",
    r"array too long\. expected",
    "requires --(?:enable-auto-tool-choice|jinja)",
    "invalid json payload received",
    "roles? must alternate",
    "function call turn comes",
    "text content blocks must be non-empty",
)

FORMAT = any_of(
    "(?:unknown|unrecognized|unsupported|unexpected|invalid|extraneous|extra|missing|duplicate)"
    " (?:required )?(?:request )?(?:parameter|argument|field|key|property|keyword|input|name"
    r"|value|role|content type|type)s?\b(?! api)",
    "extra (?:inputs|fields) (?:are )?not (?:permitted|allowed)",
    "tool_use ids were found without",
    r"tool_use[^\n]{0,60}tool_result",
    "tool_call_ids? did not have response",
    "messages with role tool must be",
    "tool_calls? must be followed",
    "roles? must alternate",
    "no tool (?:call|output) found",
    "invalid schema for (?:function|response|tool)",
    "does not match (?:the )?(?:pattern|expected|schema)",
    "string does not match pattern",
    "(?:input should|field required|value is not a valid|value error,)",
    "must (?:be|contain|have|start|end) (?:a |an |at least |one of |non-empty|unique|with |alphanumeric)",
    r"(?:content|text|messages?|blocks?|field)\W[^\n]{0,40}(?:must be|cannot be|may not be|should"
    " not be|should be) (?:non-empty|empty|null|blank)",
    "at least one message is required",
    "no endpoints found that (?:can )?(?:support|handle)",
    "(?:does not|doesnt|do not|not) support (?:tools?|tool use|tool calling|images?|image input"
    "|vision|function|cache|system|streaming|multimodal|assistant|developer|response_format"
    "|parameters|reasoning|thinking|prompt caching)",
    r"supports? at most \d+ images?",
    r"at most \d+ images?",
    "too many images",
    "(?:is|are) not supported (?:with|by|for|when|in) (?:this|the|with) (?:model|endpoint|request|parameter)",
    r"(?:unsupported|invalid|not supported)[^\n]{0,30}(?:image|media|file|mime)[^\n]{0,12}(?:type"
    "|format|url|data)?",
    "could not process image",
    "function call turn",
    "function response parts",
    "invalid json (?:payload|body|in request)",
    "malformed input request",
    "request (?:body )?(?:is )?(?:malformed|not valid json)",
    "(?:invalid|unknown) (?:name|value|type) (?:for|at|:)",
    "requires --enable-auto-tool-choice",
    "cannot both be specified",
    "prefill",
    "is (?:not permitted|not allowed) (?:for|with|in|when)",
    "request contains an invalid argument",
    "validation (?:error|failed|failure)",
    r"(?:conversation|message) (?:roles|history)[^\n]{0,30}(?:alternate|invalid|must)",
    r"rejected (?:the|your) request (?:schema|body|payload|format)|^\W*invalid url\b",
    "(?:invalid|incorrect) (?:request|message|tool|function|role|type|format|input|arguments?"
    r"|param(?:eter)?s?)\b",
    r"array too long\. expected",
    "failed to deserialize",
    r"(?:tools?|functions?)(?:\[\d+\]|\.\d+)\.\w+",
    r"messages?(?:\[\d+\]|\.\d+)[.:]",
    "without its required following item",
    "function calling is not enabled",
    "duplicate (?:item|tool|id)",
    "unable to parse|cannot parse|failed to parse",
    r"not accessible via the[^\n]{0,40}endpoint",
)

LOCAL_TRANSPORT = any_of(
    r"(?:could not|cannot|unable to|failed to) connect\b",
    "peer closed connection",
    r"error sending request for url|\bnet::err_(?:incomplete|connection|network|timed|internet|name)\w*",
    r"\bdial (?:tcp|udp)\b|no such host|\[ssl: ?\w+\]|(?:ssl|tls)v?[\d.]* alert\b|bad record mac",
    "incomplete chunked read",
    "connection (?:was |has been |is )?(?:reset|closed|aborted|lost|broken|terminated|dropped"
    "|interrupted|refused|error)",
    r"(?:stream|server|client|upstream)[^\n]{0,20}disconnect",
    r"stream (?:closed|ended|error|was reset|interrupted)[^\n]{0,40}(?:before|without"
    "|unexpectedly|premature|disconnect|cancel|internal)",
    r"econn(?:reset|refused|aborted)|etimedout|enotfound|eai_again|epipe|und_err_\w+|ehostunreach"
    "|enetunreach",
    "socket (?:hang up|connection was closed|closed|timeout)",
    "(?:name resolution|name or service not known|nodename nor servname|getaddrinfo|dns"
    " (?:lookup|resolution|error))",
    "premature(?:ly)? (?:close|closed|end)",
    "(?:fetch failed|network (?:error|connection lost|is unreachable)|cannot connect to host"
    "|failed to (?:connect|establish)|unable to connect|max retries exceeded with url|no route"
    " to host)",
    r"unexpected eof|\beof\b (?:occurred|while|reached)|read: connection|broken pipe|goaway"
    "|http/2 stream",
    r"^\W*(?:\w*error: )?(?:terminated|aborted|request was aborted\.?)\W*$",
    "request was aborted",
    r"before (?:response\.completed|completion|message_stop|\[done\])",
    "remote end closed",
    "all connection attempts failed",
)

TIMED_OUT = any_of(
    r"\btimed[ -]?out\b",
    r"^\W*time-?out\W*$",
    r"\b(?:read|request|connect|connection|gateway|idle|upstream|stream|response|inactivity"
    "|operation|server|api|network|socket) ?time-?out",
    "deadline[ _]?exceeded|deadline expired",
    r"time-?out (?:error|occurred|exceeded|while|waiting|after|of \d|reached|awaiting)",
    r"(?:no (?:data|response|bytes|chunk|event)s?|nothing)[^\n]{0,30}(?:received"
    r"|sent)?[^\n]{0,20}(?:for|within|in) \d+ ?(?:s|ms|seconds)",
    "took too long",
    "didnt respond in time|did not respond (?:in time|within)",
    "context deadline|request timeout|gateway time-?out|a timeout occurred",
)

CERTIFICATE = any_of(
    "certificate[_ ]verify[_ ]failed",
    "certificate (?:has expired|is not valid|verify failed|not trusted|hostname mismatch)",
    "self[- ]signed certificate",
    "unable to (?:get local issuer|verify the first) ?certificate?",
    "hostname mismatch, certificate",
    "invalid ssl certificate",
)

SERVER = any_of(
    r"has crashed|crashed without|encountered an unexpected error",
    "(?:internal|unexpected)[ _](?:server[ _])?(?:error|failure|exception)",
    "error occurred while processing your request",
    "(?:had|encountered) an (?:unexpected |internal )?error (?:while )?process",
    "an unexpected error (?:occurred|has occurred)",
    "bad gateway",
    "origin web server returned an invalid",
    "something went wrong",
    "server_error",
    "the server encountered",
    "upstream (?:error|server error|provider error)",
    r"unknown error, \d+ in|system error\b",
    r"(?:internal|server)[- ]side (?:issue|error)|网络错误[^\n]{0,60}稍后",
)
