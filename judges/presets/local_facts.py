"""What the documentation of servers and gateways that people run themselves says, and what it is silent about.

Each fact begins with what it is about, as in the table of docs/judges-file.md.
"""

from judges.presets.record import Fact

READ = "2026-11-22"
SILENT_BATCH = "Batch: the documentation is silent."

_VLLM_SOURCE = "https://github.com/vllm-project/vllm/blob/main/vllm/entrypoints/openai/"
VLLM = (
    Fact(
        "Schema mode: response_format takes json_schema, json_object and text; a named tool_choice binds to its "
        "schema; guided_json was removed in 0.12 and is ignored.",
        "https://docs.vllm.ai/en/latest/features/structured_outputs/",
        READ,
    ),
    Fact(
        "Base URL: port 8000, /v1; no key unless the server was started with --api-key.",
        "https://docs.vllm.ai/en/stable/serving/openai_compatible_server/",
        READ,
    ),
    Fact(
        "Parameters: fields that it does not know are ignored with a line in the server's log; max_tokens and "
        "max_completion_tokens, seed, stop and reasoning_effort (none to max) are known.",
        f"{_VLLM_SOURCE}chat_completion/protocol.py",
        READ,
    ),
    Fact(
        "Log-probabilities: as many alternatives as --max-logprobs says, 20 by default.",
        "https://github.com/vllm-project/vllm/blob/main/vllm/engine/arg_utils.py",
        READ,
    ),
    Fact(
        "Reasoning: with --reasoning-parser in the message's `reasoning` (before 0.11 in `reasoning_content`), without "
        "it in the text itself; Qwen3 thinks unless chat_template_kwargs says enable_thinking false, DeepSeek-V3.1 and "
        "Granite only where it says thinking true.",
        "https://docs.vllm.ai/en/v0.26.0/features/reasoning_outputs/",
        READ,
    ),
    Fact(
        "Usage: prompt_tokens, completion_tokens, and cached_tokens where the server is told to count them; no "
        "reasoning tokens.",
        f"{_VLLM_SOURCE}engine/protocol.py",
        READ,
    ),
    Fact(
        "Context: max_model_len in GET /v1/models; a longer request is answered with 400.",
        "https://github.com/harbor-framework/harbor/pull/996",
        READ,
    ),
    Fact(
        "Cache: prefixes are reused without being asked for, where the server runs with prefix caching.",
        "https://www.mintlify.com/vllm-project/vllm/features/prefix-caching",
        READ,
    ),
    Fact(
        "Batch: files of OpenAI's format are run offline; about an endpoint the documentation is silent.",
        "https://docs.vllm.ai/en/v0.8.3/_sources/getting_started/examples/openai.md",
        READ,
    ),
)

_SGLANG_SOURCE = "https://github.com/sgl-project/sglang/blob/main/python/sglang/srt/entrypoints/openai/protocol.py"
SGLANG = (
    Fact(
        "Schema mode: response_format takes json_schema, json_object and text; a named tool_choice is obeyed; beside "
        "a response_format tools are not bound.",
        _SGLANG_SOURCE,
        READ,
    ),
    Fact(
        "Base URL: port 30000, /v1; no key unless the server was started with --api-key.",
        "https://mintlify.com/sgl-project/sglang/backend/openai-compatible-api",
        READ,
    ),
    Fact(
        "Parameters: fields that it does not know are ignored; about a model of another name the documentation is "
        "silent.",
        _SGLANG_SOURCE,
        READ,
    ),
    Fact("Log-probabilities: top_logprobs is known; the documentation is silent about the most.", _SGLANG_SOURCE, READ),
    Fact(
        "Reasoning: with --reasoning-parser in `reasoning_content` (separate_reasoning false leaves it in the text), "
        "without it in the text itself; enable_thinking or thinking in chat_template_kwargs, or reasoning_effort.",
        "https://docs.sglang.io/docs/advanced_features/separate_reasoning",
        READ,
    ),
    Fact(
        "Reasoning: a budget of thoughts is a hint to the chat template, or needs a server started for it.",
        "https://docs.sglang.io/docs/advanced_features/thinking_budget",
        READ,
    ),
    Fact(
        "Usage: prompt_tokens, completion_tokens and, beside them, reasoning_tokens; cached_tokens with "
        "--enable-cache-report.",
        _SGLANG_SOURCE,
        READ,
    ),
    Fact(
        "Context: max_model_len in GET /v1/models; a longer request is answered with 400.",
        "https://github.com/QwenLM/Qwen3/issues/1321",
        READ,
    ),
    Fact(
        "Cache: prefixes are reused without being asked for.",
        "https://www.mintlify.com/sgl-project/sglang/concepts/radix-attention",
        READ,
    ),
    Fact(SILENT_BATCH, _SGLANG_SOURCE, READ),
)

_LLAMA_README = "https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md"
LLAMA_CPP = (
    Fact(
        "Schema mode: response_format takes json_schema and json_object, with a schema in either.",
        _LLAMA_README,
        READ,
    ),
    Fact(
        "Schema mode: a tool_choice that names a tool is taken as auto without a word, so that nothing binds.",
        "https://github.com/ggml-org/llama.cpp/issues/26535",
        READ,
    ),
    Fact(
        "Base URL: /v1 on port 8080, in newer builds on 9931; no key unless the server was started with --api-key.",
        _LLAMA_README,
        READ,
    ),
    Fact(
        "Parameters: the /completion endpoint's own are known too; about unknown ones the documentation is silent.",
        _LLAMA_README,
        READ,
    ),
    Fact(
        "Log-probabilities: logprobs and top_logprobs as OpenAI has them; the documentation is silent about the most.",
        _LLAMA_README,
        READ,
    ),
    Fact(
        "Reasoning: in `reasoning_content` (--reasoning-format auto or deepseek) or left in the text (none); off with "
        "enable_thinking false in chat_template_kwargs or reasoning_effort none.",
        _LLAMA_README,
        READ,
    ),
    Fact("Usage: prompt_tokens, completion_tokens, cached_tokens; no reasoning tokens.", _LLAMA_README, READ),
    Fact(
        "Context: n_ctx in GET /props; a longer request is answered with 400 exceed_context_size_error.",
        "https://github.com/ggml-org/llama.cpp/pull/15780",
        READ,
    ),
    Fact("Cache: the prompt of a slot is kept (--cache-prompt, on by default).", _LLAMA_README, READ),
    Fact(SILENT_BATCH, _LLAMA_README, READ),
)

_OLLAMA_DOC = "https://docs.ollama.com/api/openai-compatibility"
_OLLAMA_SOURCE = "https://github.com/ollama/ollama/blob/main/openai/openai.go"
OLLAMA = (
    Fact("Schema mode: response_format takes json_schema and json_object.", _OLLAMA_SOURCE, READ),
    Fact(
        "Schema mode: tools are known, tool_choice is ignored, so that nothing binds.",
        "https://github.com/ollama/ollama/issues/17921",
        READ,
    ),
    Fact("Base URL: port 11434, /v1; a key is ignored.", _OLLAMA_DOC, READ),
    Fact("Parameters: fields that it does not know are ignored; max_tokens, seed, stop.", _OLLAMA_SOURCE, READ),
    Fact(
        "Log-probabilities: listed as supported; the documentation is silent about the most.",
        _OLLAMA_DOC,
        READ,
    ),
    Fact(
        "Reasoning: in the message's `reasoning`; reasoning_effort none turns it off, another value that the model "
        "does not know is answered with 400.",
        _OLLAMA_SOURCE,
        READ,
    ),
    Fact("Usage: prompt_tokens and completion_tokens, nothing of cache or reasoning.", _OLLAMA_SOURCE, READ),
    Fact(
        "Context: what is in use in GET /api/ps once the model is loaded, by default 4k below 24 GiB of GPU memory; "
        "set it with OLLAMA_CONTEXT_LENGTH.",
        "https://github.com/ollama/ollama/blob/main/docs/context-length.mdx",
        READ,
    ),
    Fact(
        "Context: a longer request is no error: the beginning is cut off without a word.",
        "https://github.com/orgs/infiniflow/discussions/10500",
        READ,
    ),
    Fact("Cache: the documentation is silent.", _OLLAMA_DOC, READ),
    Fact(SILENT_BATCH, _OLLAMA_DOC, READ),
)

_LMS_CHAT = "https://lmstudio.ai/docs/developer/openai-compat/chat-completions"
LM_STUDIO = (
    Fact(
        "Schema mode: response_format takes json_schema.",
        "https://lmstudio.ai/docs/developer/openai-compat/structured-output",
        READ,
    ),
    Fact(
        "Schema mode: json_object is answered with 400.",
        "https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/189",
        READ,
    ),
    Fact(
        "Schema mode: a tool_choice that names a tool is answered with 400; the word required makes a model call one.",
        "https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/670",
        READ,
    ),
    Fact(
        "Base URL: port 1234, /v1; no key unless the server's settings ask for one.",
        "https://lmstudio.ai/docs/developer/rest/quickstart",
        READ,
    ),
    Fact(
        "Parameters: temperature, top_p, max_tokens, stop and seed are listed; about unknown ones the documentation is "
        "silent.",
        _LMS_CHAT,
        READ,
    ),
    Fact(
        "Log-probabilities: asked for, none come, without an error.",
        "https://github.com/lmstudio-ai/lms/issues/60",
        READ,
    ),
    Fact(
        "Reasoning: in the text as <think>, or in `reasoning_content` where the developer settings say so; of gpt-oss "
        "in `reasoning`; about turning it off the documentation is silent.",
        "https://lmstudio.ai/docs/developer/api-changelog",
        READ,
    ),
    Fact(
        "Usage: prompt_tokens and completion_tokens.",
        "https://lmstudio.ai/docs/developer/rest/endpoints",
        READ,
    ),
    Fact(
        "Context: max_context_length in GET /api/v0/models; about a longer request the documentation is silent.",
        "https://lmstudio.ai/docs/developer/rest/endpoints",
        READ,
    ),
    Fact("Cache: the documentation is silent.", _LMS_CHAT, READ),
    Fact(SILENT_BATCH, _LMS_CHAT, READ),
)

_TGI_API = "https://github.com/huggingface/text-generation-inference/blob/main/docs/openapi.json"
_TGI_GUIDE = "https://huggingface.co/docs/text-generation-inference/basic_tutorials/using_guidance"
TGI = (
    Fact(
        "Schema mode: response_format is {type: json, value: the schema}; a named tool_choice is obeyed.",
        _TGI_API,
        READ,
    ),
    Fact("Schema mode: JSON without a schema is not offered.", _TGI_API, READ),
    Fact(
        "Base URL: /v1 on port 3000, or the one that the Docker image is published on; about keys the documentation "
        "is silent.",
        "https://github.com/huggingface/text-generation-inference/blob/main/docs/source/reference/launcher.md",
        READ,
    ),
    Fact(
        "Parameters: at most four stop sequences; the model's name is not used; about unknown ones the documentation "
        "is silent; errors are {error, error_type} under 422.",
        _TGI_API,
        READ,
    ),
    Fact(
        "Log-probabilities: 0 to 5 alternatives.",
        "https://github.com/huggingface/huggingface_hub/blob/main/src/huggingface_hub/inference/_generated/types/"
        "chat_completion.py",
        READ,
    ),
    Fact("Reasoning: the documentation is silent; thoughts stand in the text.", _TGI_GUIDE, READ),
    Fact("Usage: prompt_tokens, completion_tokens, total_tokens.", _TGI_API, READ),
    Fact("Context: max_total_tokens in GET /info; a longer request is answered with 422.", _TGI_API, READ),
    Fact("Cache: the documentation is silent.", _TGI_API, READ),
    Fact(SILENT_BATCH, _TGI_API, READ),
)

_LITELLM_JSON = "https://docs.litellm.ai/docs/completion/json_mode"
_LITELLM_THINK = "https://docs.litellm.ai/docs/reasoning_content"
LITELLM = (
    Fact(
        "Schema mode: response_format and tools as OpenAI has them, translated for the model behind it.",
        _LITELLM_JSON,
        READ,
    ),
    Fact(
        "Base URL: port 4000, /v1; any key where no master key is set.",
        "https://docs.litellm.ai/docs/proxy/user_keys",
        READ,
    ),
    Fact(
        "Parameters: one that the model behind it does not take is answered with 400, unless drop_params is set; one "
        "that OpenAI does not have is passed on.",
        "https://docs.litellm.ai/docs/completion/drop_params",
        READ,
    ),
    Fact(
        "Log-probabilities: of OpenAI's models; a few others refuse the question.",
        "https://docs.litellm.ai/docs/completion/input",
        READ,
    ),
    Fact(
        "Reasoning: in `reasoning_content`; reasoning_effort, or thinking with a budget, for the models that have it.",
        _LITELLM_THINK,
        READ,
    ),
    Fact(
        "Usage: as OpenAI has it, with cached_tokens, and cache_creation_input_tokens of Anthropic's models, both part "
        "of prompt_tokens.",
        "https://docs.litellm.ai/docs/completion/prompt_caching",
        READ,
    ),
    Fact(
        "Context: max_input_tokens in GET /model/info; what a longer request meets is up to the model behind it.",
        "https://docs.litellm.ai/docs/proxy/model_management",
        READ,
    ),
    Fact("Cache: as the model behind it.", "https://docs.litellm.ai/docs/completion/prompt_caching", READ),
    Fact("Batch: there is an endpoint; it is not used here.", "https://docs.litellm.ai/docs/proxy/user_keys", READ),
)
