"""What is documented of the providers that there have always been: OpenAI, Anthropic, Google AI."""

from judges.presets.record import Fact

READ = "2026-11-22"
_OPENAI = "https://github.com/openai/openai-python/blob/main/src/openai/types/"
_ANTHROPIC = "https://github.com/anthropics/anthropic-sdk-python/blob/main/src/anthropic/"
_GOOGLE = "https://github.com/googleapis/python-genai/blob/main/google/genai/"

OPENAI = (
    Fact(
        "Schema mode: response_format takes json_schema and json_object; json_schema is preferred.",
        f"{_OPENAI}chat/completion_create_params.py",
        READ,
    ),
    Fact(
        "Log-probabilities: top_logprobs from 0 to 20; fewer may come back.",
        f"{_OPENAI}chat/completion_create_params.py",
        READ,
    ),
    Fact(
        "Reasoning: reasoning_effort from none to max; not every model takes every value.",
        f"{_OPENAI}chat/completion_create_params.py",
        READ,
    ),
    Fact(
        "Reasoning: its tokens are counted, its text is not part of a chat completion.",
        f"{_OPENAI}chat/chat_completion_message.py",
        READ,
    ),
    Fact("Usage: cached_tokens and reasoning_tokens.", f"{_OPENAI}completion_usage.py", READ),
    Fact("Batches: files of chat completions, done within 24 hours.", f"{_OPENAI}batch_create_params.py", READ),
    Fact(
        "Cache: automatic for prompts of 1,024 tokens and more.",
        "https://docs.apiyi.com/en/api-capabilities/openai/prompt-caching.md",
        READ,
    ),
)

ANTHROPIC = (
    Fact("Schema mode: output_config.format takes a JSON schema.", f"{_ANTHROPIC}types/output_config_param.py", READ),
    Fact(
        "Parameters: no temperature, top_p, seed or log-probabilities.",
        f"{_ANTHROPIC}types/message_create_params.py",
        READ,
    ),
    Fact(
        "Reasoning: adaptive, or a budget from 1,024 tokens to below max_tokens; the text comes as thinking blocks.",
        f"{_ANTHROPIC}types/thinking_config_enabled_param.py",
        READ,
    ),
    Fact("Reasoning: effort from low to max.", f"{_ANTHROPIC}types/output_config_param.py", READ),
    Fact("Usage: thinking_tokens among the output tokens.", f"{_ANTHROPIC}types/output_tokens_details.py", READ),
    Fact("Batches: take up to 24 hours.", f"{_ANTHROPIC}resources/messages/batches.py", READ),
    Fact(
        "Cache: breakpoints in the request, kept for 5 minutes or an hour.",
        f"{_ANTHROPIC}types/cache_control_ephemeral_param.py",
        READ,
    ),
)

GOOGLE = (
    Fact(
        "Schema mode: response_json_schema with response_mime_type; not every feature of JSON Schema.",
        f"{_GOOGLE}types.py",
        READ,
    ),
    Fact(
        "Log-probabilities: response_logprobs and a number of candidates; the most is not said, 20 are taken.",
        f"{_GOOGLE}types.py",
        READ,
    ),
    Fact(
        "Reasoning: thinking_budget (0 off, -1 automatic) or thinking_level; include_thoughts returns summaries.",
        f"{_GOOGLE}types.py",
        READ,
    ),
    Fact("Usage: cached_content_token_count; thoughts_token_count beside the output.", f"{_GOOGLE}types.py", READ),
    Fact("Batches: requests inline or from a file.", f"{_GOOGLE}batches.py", READ),
    Fact(
        "Cache: implicit for Gemini 2.5 and newer, from 2,048 tokens (4,096 with some models).",
        "https://techdevnotes.com/releases/gemini-docs/20260626-140339Z-75a2454c2e49/content/pages/caching.txt",
        "2026-06-26",
    ),
)
