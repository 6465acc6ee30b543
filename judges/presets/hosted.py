"""Presets of companies that host models under an API of OpenAI's form."""

from judges.presets import thinkers
from judges.presets.record import CHAT, Fact, Preset

READ = "2026-11-22"
"""When pages without a date of their own were looked up."""

EFFORT = {"reasoning_effort": "reasoning_effort"}

DEEPSEEK = Preset(
    name="deepseek",
    title="DeepSeek",
    wire="chat",
    base_url="https://api.deepseek.com",
    key_env="DEEPSEEK_API_KEY",
    schema_mode="json_object",
    schema_modes=("json_object", "tool", "text"),
    names={key: path for key, path in (CHAT | EFFORT).items() if key != "seed"},
    thinking="deepseek",
    thinking_models=r"(?i)deepseek-(?!chat\b)",
    forces_thinkers=False,
    logprobs=20,
    usage={"cached": "prompt_cache_hit_tokens"},
    cache="automatic",
    facts=(
        Fact(
            "Schema mode: response_format takes text and json_object; json_schema is answered with 400 "
            '"This response_format type is unavailable now".',
            "https://github.com/llm-exe/llm-exe/issues/662",
            "2026-07-11",
        ),
        Fact(
            'json_object needs the word "json" in the prompt, else 400.',
            "https://github.com/browserbase/stagehand/issues/1204",
            "2025-10-30",
        ),
        Fact(
            "Reasoning: models think unless thinking.type says disabled; reasoning_effort says low, high or max; the "
            "text stands in reasoning_content. Temperature has no effect while they think.",
            "https://api-docs.deepseek.com/guides/thinking_mode",
            READ,
        ),
        Fact(
            'While a model thinks, a tool that it must call is refused with 400 "Thinking mode does not support this '
            'tool_choice": the choice is left to it.',
            "https://github.com/deepseek-ai/DeepSeek-V3/issues/1376",
            "2026-08-21",
        ),
        Fact(
            "Log-probabilities: logprobs and top_logprobs, refused while the model thinks (set thinking = false). The "
            "stored copy does not show how many alternatives: 20 are taken, as with OpenAI.",
            "https://api-docs.deepseek.com/zh-cn/guides/reasoning_model",
            READ,
        ),
        Fact(
            "Usage: prompt_cache_hit_tokens and prompt_cache_miss_tokens; reasoning tokens are part of "
            "completion_tokens.",
            "https://juejin.cn/post/7634002571020320787",
            READ,
        ),
        Fact(
            "Cache: on for all accounts, nothing is asked for.",
            "https://share.apidog.com/apidoc/docs-site/747793/pt/cache-de-contexto-836444m0",
            READ,
        ),
        Fact(
            "Errors: 400 format, 401 key, 402 no balance, 422 parameters, 429 too fast, 500 and 503.",
            "https://api-docs.deepseek.com/quick_start/error_codes",
            READ,
        ),
        Fact(
            "A context that is too long is answered with 400 and the number of tokens.",
            "https://github.com/evalstate/fast-agent/issues/621",
            "2026-01-19",
        ),
        Fact(
            "Batch, seed, service tier, unknown parameters: the documentation is silent.",
            "https://api-docs.deepseek.com",
            READ,
        ),
    ),
)

QWEN = Preset(
    name="qwen",
    title="Qwen (Alibaba Cloud DashScope)",
    wire="chat",
    base_url="https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
    key_env="DASHSCOPE_API_KEY",
    schema_mode="json_object",
    names={**CHAT, **EFFORT},
    thinking="qwen",
    thinking_models=r"(?i)^(qwq|qvq)|thinking",
    says_thinking=True,
    thinking_schema_mode="text",
    forces_thinkers=False,
    logprobs=5,
    cache="automatic",
    facts=(
        Fact(
            "Base URL: one for each region, and each region has keys of its own; this one is Singapore.",
            "https://www.alibabacloud.com/help/en/model-studio/qwen-api-via-openai-chat-completions",
            "2026-03-18",
        ),
        Fact(
            "Schema mode: json_object with most Qwen models, json_schema with newer ones (qwen3-max, qwen-plus, "
            "qwen-flash and others).",
            "https://www.alibabacloud.com/help/en/model-studio/qwen-structured-output",
            "2026-02-18",
        ),
        Fact(
            'json_object needs the word "json" in the prompt, else 400.',
            "https://www.alibabacloud.com/help/en/model-studio/qwen-structured-output",
            "2026-02-18",
        ),
        Fact(
            "Reasoning: enable_thinking, on by default for open models and off for commercial ones; thinking_budget "
            "is its most tokens. The text stands in reasoning_content.",
            "https://www.alibabacloud.com/help/en/model-studio/deep-thinking",
            "2026-06-18",
        ),
        Fact(
            "reasoning_effort: qwen3.8 takes low to max, without a thinking_budget beside it. About other models the "
            "documentation is silent.",
            "https://github.com/QwenLM/qwen-code/pull/8472",
            "2026-08-03",
        ),
        Fact(
            "Thinking is answered as a stream only; without one it is refused with 400. Quorum streams such answers, "
            "and says enable_thinking = false otherwise.",
            "https://www.alibabacloud.com/help/model-studio/error-code",
            "2026-09-28",
        ),
        Fact(
            "While a model thinks, a tool that it must call is refused with 400 (tool_choice does not support being "
            "set to required or object in thinking mode): the choice is left to it.",
            "https://github.com/QwenLM/qwen-code/issues/7659",
            "2026-07-24",
        ),
        Fact(
            'JSON mode beside thinking: refused with 400 "Json mode response is not supported when enable_thinking is '
            'true" by older models; newer ones take it. While a model thinks the usual mode is text.',
            "https://github.com/presenton/presenton/issues/184",
            "2025-08-04",
        ),
        Fact(
            "Usage: prompt_tokens_details.cached_tokens, as OpenAI; a stream says it at its end where "
            "stream_options.include_usage asks for it.",
            "https://docs.qwencloud.com/api-reference/chat/openai-chat",
            READ,
        ),
        Fact(
            "Log-probabilities: answers have a place for them. The stored copy does not show how many alternatives: "
            "5 are taken.",
            "https://docs.qwencloud.com/api-reference/chat/openai-chat",
            READ,
        ),
        Fact(
            'A context that is too long is answered with 400 "Range of input length should be [1, ...]".',
            "https://alibabacloud.com/help/tc/model-studio/error-code",
            "2026-02-07",
        ),
        Fact(
            "Batch through this program, service tier, unknown parameters: the documentation that was read is silent.",
            "https://www.alibabacloud.com/help/en/model-studio/qwen-api-via-openai-chat-completions",
            "2026-03-18",
        ),
    ),
)

MISTRAL = Preset(
    name="mistral",
    title="Mistral",
    wire="chat",
    base_url="https://api.mistral.ai/v1",
    key_env="MISTRAL_API_KEY",
    names=CHAT | EFFORT | {"seed": "random_seed"},
    thinking_models=r"(?i)magistral",
    cache="none",
    facts=(
        Fact(
            "Schema mode: json_schema with a schema of one's own, json_object, tools.",
            "https://docs.mistral.ai/capabilities/structured-output/custom_structured_output/",
            READ,
        ),
        Fact(
            "Parameters: max_tokens, random_seed (not seed), stop; there is no logprobs.",
            "https://github.com/mistralai/client-python/blob/09c7732b3e82/src/mistralai/models/"
            "chatcompletionrequest.py",
            READ,
        ),
        Fact(
            "Unknown parameters are refused with 422 (extra_forbidden), max_completion_tokens among them.",
            "https://github.com/editor-code-assistant/eca/issues/231",
            "2025-12-12",
        ),
        Fact(
            "Reasoning: reasoning_effort on small and medium models; magistral models always think (deprecated).",
            "https://docs.mistral.ai/inference/conversations/reasoning",
            READ,
        ),
        Fact(
            "The thoughts are a chunk of type thinking in a list of the answer's contents (models of 2507 and later; "
            "those of 2506 wrote <think> into the text).",
            "https://docs.mistral.ai/capabilities/reasoning/native",
            READ,
        ),
        Fact(
            "Cache: only by prompt_cache_key, which a request has where extra_body says it.",
            "https://docs.mistral.ai/inference/conversations/advanced/prompt-caching.md",
            READ,
        ),
        Fact(
            "Usage: prompt_tokens, completion_tokens, total_tokens. Of reasoning tokens the documentation is silent.",
            "https://github.com/mistralai/client-python/blob/15eb16b4d565/src/mistralai/client/models/usageinfo.py",
            READ,
        ),
        Fact(
            "Batch: it has an endpoint of its own form, which Quorum does not use. Log-probabilities, service tier "
            "and the error of a context that is too long: the documentation is silent.",
            "https://docs.mistral.ai",
            READ,
        ),
    ),
)

XAI = Preset(
    name="xai",
    title="xAI",
    wire="chat",
    base_url="https://api.x.ai/v1",
    key_env="XAI_API_KEY",
    names=CHAT | EFFORT | {"max_output_tokens": "max_completion_tokens"},
    thinking_models=r"(?i)grok-(?!2|3(?!-mini)|.*non-reasoning)",
    logprobs=8,
    reasoning_apart=True,
    cache="automatic",
    facts=(
        Fact(
            "Chat completions are deprecated in favour of Responses; they are still answered.",
            "https://docs.x.ai/developers/model-capabilities/text/best-practices",
            READ,
        ),
        Fact(
            "Schema mode: response_format takes text, json_object and json_schema; tools too.",
            "https://docs.outcode.biz/en/apps/ai/xai/actions/create-text-completion",
            READ,
        ),
        Fact(
            "Reasoning: grok-3-mini alone shows its text (reasoning_content). Reasoning models refuse stop and the "
            "two penalties.",
            "https://docs.x.ai/docs/guides/reasoning",
            READ,
        ),
        Fact(
            "reasoning_effort is refused with 400 by models that do not have it (grok-4, grok-4-fast-reasoning, "
            "grok-code-fast-1 and others).",
            "https://github.com/BerriAI/litellm/pull/16265",
            "2025-11-05",
        ),
        Fact(
            "Log-probabilities: top_logprobs from 0 to 8 (said of Responses; of chat completions the pages that were "
            "read are silent).",
            "https://reference.langchain.com/javascript/langchain-xai/XAIResponsesCreateParams",
            READ,
        ),
        Fact(
            "Usage: reasoning_tokens stand beside completion_tokens, not in them.",
            "https://docs.cloud.google.com/vertex-ai/generative-ai/docs/partner-models/grok/capabilities/reasoning",
            READ,
        ),
        Fact(
            "Cache: on by itself, in prompt_tokens_details.cached_tokens.",
            "https://docs.x.ai/developers/advanced-api-usage/prompt-caching/usage-and-pricing",
            READ,
        ),
        Fact(
            "Errors: 400 for an argument or a wrong key, 401 without a key, 403 without rights.",
            "https://docs.x.ai/developers/debugging",
            READ,
        ),
        Fact(
            "Batch: it has an endpoint of its own form, which Quorum does not use.",
            "https://docs.x.ai/developers/release-notes",
            READ,
        ),
        Fact(
            "Service tier of chat completions, unknown parameters and the error of a context that is too long: the "
            "documentation is silent.",
            "https://docs.x.ai",
            READ,
        ),
    ),
)

GROQ = Preset(
    name="groq",
    title="Groq",
    wire="chat",
    base_url="https://api.groq.com/openai/v1",
    key_env="GROQ_API_KEY",
    schema_mode="json_object",
    names=CHAT | EFFORT | {"max_output_tokens": "max_completion_tokens", "service_tier": "service_tier"},
    thinking_models=r"(?i)gpt-oss|qwen3|qwq|deepseek-r1|thinking",
    reasoning=("reasoning",),
    cache="automatic",
    facts=(
        Fact(
            "Schema mode: json_schema on some models only (strict on fewer), 400 on the others; json_object and "
            "tools on all.",
            "https://console.groq.com/docs/structured-outputs.md",
            READ,
        ),
        Fact(
            "Log-probabilities: logprobs, top_logprobs and logit_bias are refused with 400.",
            "https://console.groq.com/docs/openai",
            READ,
        ),
        Fact("Temperature 0 is read as 1e-8.", "https://console.groq.com/docs/openai", READ),
        Fact(
            "Reasoning: reasoning_effort; reasoning_format raw, parsed or hidden; raw is refused with JSON or a tool, "
            "where parsed is the default. The text stands in the message's reasoning.",
            "https://console.groq.com/docs/reasoning",
            READ,
        ),
        Fact(
            "service_tier takes auto, on_demand and flex.",
            "https://github.com/groq/groq-typescript/blob/01b647646392/src/resources/chat/completions.ts",
            READ,
        ),
        Fact(
            "Errors: 400, 401, 403, 404, 413, 422, 429, 498 (no room in the flex tier), 5xx.",
            "https://console.groq.com/docs/errors",
            READ,
        ),
        Fact(
            "A context that is too long is answered with 400 context_length_exceeded.",
            "https://github.com/thepersonalaicompany/amurex-backend/issues/51",
            "2025-03-04",
        ),
        Fact(
            "Cache: on by itself, in prompt_tokens_details.cached_tokens.",
            "https://github.com/vercel/ai/releases/tag/@ai-sdk%2Fgroq@4.0.8",
            "2026-07-11",
        ),
        Fact(
            "Batch: half the price; Quorum does not use it.",
            "https://raw.githubusercontent.com/api-evangelist/groq/refs/heads/main/plans/groq-plans-pricing.yml",
            "2026-05-08",
        ),
    ),
)

TOGETHER = Preset(
    name="together",
    title="Together AI",
    wire="chat",
    base_url="https://api.together.ai/v1",
    key_env="TOGETHER_API_KEY",
    names=CHAT | EFFORT,
    unwrap="both",
    thinking="switch",
    thinking_models=(
        r"(?i)deepseek-(r1|v4)|gpt-oss|thinking|minimax-m|kimi-k2\.|kimi-k3|glm-[5-9]|qwen3\.|qwq|cogito-v2"
    ),
    reasoning=("reasoning", "reasoning_content"),
    facts=(
        Fact(
            "Schema mode: json_schema on models that support it, and json_object, the older one; the prompt should "
            "hold the schema too.",
            "https://docs.together.ai/docs/inference/chat/structured-outputs",
            READ,
        ),
        Fact(
            "Reasoning: reasoning.enabled switches models that can do both; reasoning_effort where it is adjustable. "
            "Most models put the text into the message's reasoning.",
            "https://docs.together.ai/docs/inference/chat/reasoning",
            READ,
        ),
        Fact(
            "Log-probabilities: logprobs is a number there, and answers have lists of tokens in a form of their own, "
            "which Quorum does not read.",
            "https://github.com/togethercomputer/together-py/blob/00c86934ed1a/src/together/types/chat/"
            "completion_create_params.py",
            READ,
        ),
        Fact(
            "A context that is too long is answered with 400 and the numbers of tokens.",
            "https://github.com/BerriAI/litellm/issues/4934",
            "2024-07-29",
        ),
        Fact(
            "Batch: up to half the price; Quorum does not use it.",
            "https://docs.together.ai/docs/inference/batch/overview",
            READ,
        ),
        Fact(
            "Cache, service tier, unknown parameters: the documentation that was read is silent.",
            "https://docs.together.ai/reference/chat-completions.md",
            READ,
        ),
    ),
)

FIREWORKS = Preset(
    name="fireworks",
    title="Fireworks AI",
    wire="chat",
    base_url="https://api.fireworks.ai/inference/v1",
    key_env="FIREWORKS_API_KEY",
    names=CHAT | EFFORT,
    unwrap="both",
    thinking="budget",
    thinking_models=r"(?i)deepseek-(r1|v4)|gpt-oss|thinking|minimax-m|kimi-k[2-9]p|glm-|qwen3|qwq",
    logprobs=5,
    cache="automatic",
    facts=(
        Fact(
            "Schema mode: json_schema and json_object; the prompt should hold the schema too.",
            "https://docs.fireworks.ai/structured-responses/structured-response-formatting",
            READ,
        ),
        Fact(
            "Reasoning: reasoning_effort, or thinking with budget_tokens; the text stands in reasoning_content, with "
            "some models as <think> in the answer itself.",
            "https://docs.fireworks.ai/guides/reasoning",
            READ,
        ),
        Fact(
            "Log-probabilities: logprobs true and top_logprobs from 0 to 5.",
            "https://github.com/fw-ai-external/python-sdk/blob/271c18114f96/src/fireworks/types/chat/"
            "completion_create_params.py",
            READ,
        ),
        Fact(
            'Unknown parameters are refused with 400 "Extra inputs are not permitted".',
            "https://github.com/web-infra-dev/midscene/issues/1322",
            "2025-10-15",
        ),
        Fact(
            "max_tokens above 4,096 is refused with 400 without a stream, and Quorum asks for none there.",
            "https://github.com/nextlevelbuilder/goclaw/pull/660",
            "2026-04-03",
        ),
        Fact(
            "A context that is too long: max_tokens is lowered to what fits, unless the prompt alone is too long.",
            "https://docs.fireworks.ai/api-reference/post-chatcompletions",
            READ,
        ),
        Fact(
            "Usage: prompt_tokens_details.cached_tokens. Of reasoning tokens the documentation is silent.",
            "https://fireworksai-docs.mintlify.dev/docs/api-reference/post-chatcompletions",
            READ,
        ),
        Fact(
            "Errors: 400, 401, 402, 403, 404, 408, 412 (an account that is suspended), 413, 429, 5xx.",
            "https://docs.fireworks.ai/guides/inference-error-codes",
            READ,
        ),
        Fact("Batch: half the price; Quorum does not use it.", "https://fireworks.ai/blog/batch-api", READ),
        Fact(
            "Service tier: the documentation is silent.",
            "https://docs.fireworks.ai/api-reference/post-chatcompletions",
            READ,
        ),
    ),
)

OPENROUTER = Preset(
    name="openrouter",
    title="OpenRouter",
    wire="chat",
    base_url="https://openrouter.ai/api/v1",
    key_env="OPENROUTER_API_KEY",
    names=CHAT
    | {
        "max_output_tokens": "max_completion_tokens",
        "reasoning_effort": "reasoning.effort",
        "service_tier": "service_tier",
    },
    unwrap="both",
    thinking="openrouter",
    thinking_models=(
        r"(?i)/(o[134]\b|gpt-(oss|[5-9](?!.*chat))|grok-(?!.*non-reasoning)(3-mini|[4-9]|code)|deepseek-(r1|v4)|"
        r"gemini-(2\.5|[3-9])|minimax-m|glm-|qwen3|qwq|kimi-k[2-9]|magistral)|thinking|" + thinkers.CLAUDE
    ),
    logprobs=20,
    reasoning=("reasoning", "reasoning_content"),
    cache="automatic",
    facts=(
        Fact(
            "Schema mode: json_object and json_schema, on models that support them.",
            "https://openrouter.ai/docs/api_reference/overview",
            READ,
        ),
        Fact(
            "Parameters: max_completion_tokens (max_tokens is deprecated), seed, stop, service_tier, top_logprobs from "
            "0 to 20.",
            "https://github.com/OpenRouterTeam/typescript-sdk/blob/03831c1ad7d3/src/models/chatrequest.ts",
            READ,
        ),
        Fact(
            "Reasoning: reasoning.effort, reasoning.max_tokens or reasoning.enabled; the text stands in the message's "
            "reasoning. Some models do not show it.",
            "https://openrouter.ai/docs/use-cases/reasoning-tokens",
            READ,
        ),
        Fact(
            "reasoning.effort and reasoning.max_tokens together are refused with 400.",
            "https://github.com/omeryasirkucuk/amx/pull/66",
            "2026-05-02",
        ),
        Fact(
            "Usage: always there, with cached_tokens, cache_write_tokens and reasoning_tokens.",
            "https://openrouter.ai/docs/use-cases/usage-accounting",
            READ,
        ),
        Fact(
            "Cache: on by itself with most providers, marked with some.",
            "https://openrouter.ai/docs/guides/features/prompt-caching.md",
            READ,
        ),
        Fact(
            "Errors: 400, 401, 402, 403, 408, 429, 502, 503; an error while the model answers comes under 200.",
            "https://openrouter.ai/docs/api/reference/errors-and-debugging",
            READ,
        ),
        Fact(
            "A context that is too long is answered with 400 and the numbers of tokens.",
            "https://github.com/earendil-works/pi/issues/6378",
            "2026-07-06",
        ),
        Fact(
            "Batch, unknown parameters: the documentation is silent.",
            "https://openrouter.ai/docs/api_reference/overview",
            READ,
        ),
    ),
)

HOSTED: tuple[Preset, ...] = (DEEPSEEK, QWEN, MISTRAL, XAI, GROQ, TOGETHER, FIREWORKS, OPENROUTER)
