"""OpenAI's other API and the clouds: Responses, Azure OpenAI, Amazon Bedrock, Vertex AI.

None has `batch`: the batch endpoints that judges.batch knows are those of openai, anthropic and google.
"""

from judges.presets import thinkers
from judges.presets.record import Fact, Preset

READ = "2026-11-22"
OPENAI_TYPES = "https://github.com/openai/openai-python/blob/main/src/openai/types/"
AZURE_GUIDES = "https://learn.microsoft.com/azure/ai-services/openai/how-to/"
VERTEX_CACHE = "https://docs.cloud.google.com/vertex-ai/generative-ai/docs/context-cache/context-cache-overview"
VERTEX_BATCH = "https://discuss.ai.google.dev/t/does-batch-api-in-vertex-ai-support-caching/107293"
VERTEX_CLAUDE_BATCH = "https://cloud.google.com/vertex-ai/generative-ai/docs/partner-models/claude-batch"
AZURE = "https://learn.microsoft.com/azure/ai-services/openai/reference"
AZURE_SPEC = (
    "https://github.com/Azure/azure-rest-api-specs/blob/main/specification/cognitiveservices/data-plane/AzureOpenAI/"
    "inference/stable/2024-10-21/inference.yaml"
)
RESPONSES = "https://github.com/openai/openai-python/blob/main/src/openai/types/responses/response_create_params.py"
REASONING = "https://developers.openai.com/api/docs/guides/reasoning"
BEDROCK = (
    "https://docs.aws.amazon.com/bedrock/latest/userguide/"
    "model-parameters-anthropic-claude-messages-request-response.html"
)
BEDROCK_SCHEMA = "https://docs.aws.amazon.com/bedrock/latest/userguide/structured-output.html"
BEDROCK_CACHE = "https://docs.aws.amazon.com/bedrock/latest/userguide/prompt-caching.html"
BEDROCK_BATCH = "https://docs.aws.amazon.com/bedrock/latest/userguide/batch-inference-create.html"
THINKING = "https://platform.claude.com/docs/en/build-with-claude/extended-thinking"
BY_THEMSELVES = "https://docs.apiyi.com/en/live/2026-11/claude-thinking-guide-refresh"
GEMINI_THINKS = "https://docs.botgem.com/gemini-thinking-mode.html"
VERTEX = "https://cloud.google.com/vertex-ai/generative-ai/docs/reference/rest/v1beta1/GenerationConfig"
VERTEX_REST = "https://cloud.google.com/vertex-ai/generative-ai/docs/reference/rest-rpc"
VERTEX_CLAUDE = "https://docs.anthropic.com/en/api/claude-on-vertex-ai"
VERTEX_SCHEMA = "https://docs.cloud.google.com/vertex-ai/generative-ai/docs/partner-models/claude/structured_outputs"

VERTEX_HOME = "https://{region}-aiplatform.googleapis.com"
VERTEX_HOMES = {
    "global": "https://aiplatform.googleapis.com",
    "us": "https://aiplatform.us.rep.googleapis.com",
    "eu": "https://aiplatform.eu.rep.googleapis.com",
}
CLAUDE = {
    "max_output_tokens": "max_tokens",
    "stop": "stop_sequences",
    "reasoning_effort": "output_config.effort",
}
"""Judge keys as Anthropic's messages name them on a cloud."""

NATIVE: tuple[Preset, ...] = (
    Preset(
        name="openai-responses",
        title="OpenAI (Responses)",
        wire="responses",
        base_url="https://api.openai.com/v1",
        key_env="OPENAI_API_KEY",
        names={
            "temperature": "temperature",
            "top_p": "top_p",
            "max_output_tokens": "max_output_tokens",
            "reasoning_effort": "reasoning.effort",
            "service_tier": "service_tier",
        },
        thinking="summary",
        thinking_models=thinkers.OPENAI,
        logprobs=20,
        cache="automatic",
        facts=(
            Fact("schema: text.format of json_schema or json_object, or a forced tool", RESPONSES, READ),
            Fact("log-probabilities: include message.output_text.logprobs, up to 20 alternatives", RESPONSES, READ),
            Fact(
                "reasoning: effort, and a summary where it is asked for, by a verified organization; the text itself "
                "is not given",
                REASONING,
                READ,
            ),
            Fact(
                "limits: max_output_tokens counts reasoning too; status incomplete says that it was met",
                REASONING,
                READ,
            ),
            Fact("seed and stop: the API has none", RESPONSES, READ),
            Fact(
                "cache: cached tokens are counted; nothing is asked for",
                f"{OPENAI_TYPES}responses/response_usage.py",
                READ,
            ),
            Fact("batches: files may name this API; Quorum does not", f"{OPENAI_TYPES}batch_create_params.py", READ),
        ),
    ),
    Preset(
        name="azure",
        title="Azure OpenAI",
        wire="chat",
        client="azure",
        key_env="AZURE_OPENAI_API_KEY",
        needs=("base_url", "api_version"),
        takes=("token_command",),
        names={
            "temperature": "temperature",
            "top_p": "top_p",
            "max_output_tokens": "max_completion_tokens",
            "seed": "seed",
            "stop": "stop",
            "reasoning_effort": "reasoning_effort",
            "service_tier": "service_tier",
        },
        logprobs=20,
        cache="automatic",
        facts=(
            Fact("address: deployment in the path, api-version in the query", AZURE, READ),
            Fact("key in the header api-key, or a token of Microsoft Entra ID as Bearer", AZURE, READ),
            Fact(
                "reasoning: which deployments reason cannot be told from their names; set reasoning_effort", AZURE, READ
            ),
            Fact("schema: json_schema since the API version 2024-10-21", f"{AZURE_GUIDES}structured-outputs", READ),
            Fact(
                "API version: 2024-10-21 has max_completion_tokens, and neither reasoning_effort nor service_tier, "
                "which need a later one",
                AZURE_SPEC,
                READ,
            ),
            Fact("log-probabilities: logprobs, with top_logprobs up to 20", AZURE_SPEC, READ),
            Fact("cache: automatic for prompts of 1,024 tokens and more", f"{AZURE_GUIDES}prompt-caching", READ),
            Fact(
                "batches: deployments of a kind of their own, which Quorum does not use", f"{AZURE_GUIDES}batch", READ
            ),
        ),
    ),
    Preset(
        name="bedrock",
        title="Amazon Bedrock",
        wire="messages",
        client="bedrock",
        base_url="https://bedrock-runtime.{region}.amazonaws.com",
        needs=("region",),
        schema_modes=("json_schema", "tool", "text"),
        names=CLAUDE,
        thinking="anthropic",
        thinking_models=thinkers.CLAUDE,
        temperature=False,
        cache="marked",
        facts=(
            Fact(
                "Anthropic's models by InvokeModel; the model's id or inference profile in the address", BEDROCK, READ
            ),
            Fact(
                "schema: output_config.format from Claude 4.5 on; older models: schema_mode = tool",
                BEDROCK_SCHEMA,
                READ,
            ),
            Fact(
                "thinking: a budget of 1,024 tokens or more, below max_tokens, up to Claude 4.6; from 4.7 on adaptive "
                "only; no forced tool beside it",
                THINKING,
                READ,
            ),
            Fact(
                "thinking by itself: Fable, Mythos and Opus 5.5 always, others from Claude 5 on by default",
                BY_THEMSELVES,
                READ,
            ),
            Fact("cache: breakpoints as at Anthropic", BEDROCK_CACHE, READ),
            Fact("log-probabilities: none", BEDROCK, READ),
            Fact("batches: jobs over files in S3, which Quorum does not use", BEDROCK_BATCH, READ),
            Fact("counts of thinking tokens: the documentation is silent", BEDROCK, READ),
        ),
    ),
    Preset(
        name="vertex",
        title="Vertex AI (Gemini)",
        wire="generate",
        client="vertex",
        base_url=VERTEX_HOME,
        homes=VERTEX_HOMES,
        needs=("region", "project"),
        takes=("token_command",),
        schema_modes=("json_schema", "json_object", "tool", "text"),
        names={
            "temperature": "temperature",
            "top_p": "top_p",
            "max_output_tokens": "max_output_tokens",
            "seed": "seed",
            "stop": "stop_sequences",
            "safety_settings": "safety_settings",
            "reasoning_effort": "thinking_config.thinking_level",
        },
        thinking="gemini",
        thinking_models=thinkers.GEMINI,
        logprobs=20,
        cache="automatic",
        facts=(
            Fact("address: project, location and publisher in the path", VERTEX_REST, READ),
            Fact("schema: responseJsonSchema with responseMimeType application/json", VERTEX, READ),
            Fact("log-probabilities: responseLogprobs and logprobs", VERTEX, READ),
            Fact("thinking: thinkingConfig; models without thinking refuse it", VERTEX, READ),
            Fact("thinking by itself: Gemini 2.5 and later, unless a budget of 0 turns it off", GEMINI_THINKS, READ),
            Fact("cache: implicit, on for every project, from 2,048 tokens", VERTEX_CACHE, READ),
            Fact("batches: jobs over files or tables, which Quorum does not use", VERTEX_BATCH, READ),
        ),
    ),
    Preset(
        name="vertex-anthropic",
        title="Vertex AI (Anthropic)",
        wire="messages",
        client="vertex",
        base_url=VERTEX_HOME,
        homes=VERTEX_HOMES,
        needs=("region", "project"),
        takes=("token_command",),
        schema_mode="tool",
        schema_modes=("json_schema", "tool", "text"),
        names=CLAUDE,
        thinking="anthropic",
        thinking_models=thinkers.CLAUDE,
        temperature=False,
        cache="marked",
        facts=(
            Fact(
                "the messages API with the model in the address and anthropic_version in the body", VERTEX_CLAUDE, READ
            ),
            Fact("schema: output_config.format only where the organization's policy allows it", VERTEX_SCHEMA, READ),
            Fact(
                "thinking: a budget of 1,024 tokens or more, below max_tokens, up to Claude 4.6; from 4.7 on adaptive "
                "only; no forced tool beside it",
                THINKING,
                READ,
            ),
            Fact(
                "thinking by itself: Fable, Mythos and Opus 5.5 always, others from Claude 5 on by default",
                BY_THEMSELVES,
                READ,
            ),
            Fact("log-probabilities: none", VERTEX_CLAUDE, READ),
            Fact("cache: breakpoints as at Anthropic; the pages that were read are silent", VERTEX_CLAUDE, READ),
            Fact("batches: jobs over files or tables, which Quorum does not use", VERTEX_CLAUDE_BATCH, READ),
        ),
    ),
)
