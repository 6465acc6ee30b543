"""Any server that speaks OpenAI's chat completions: vLLM, Ollama, DeepSeek, Qwen and others."""

from judges.providers.openai import OpenAIProvider


class CompatibleProvider(OpenAIProvider):
    """The same call under the names that such servers know; a server without a key gets no credentials."""

    output_limit = "max_tokens"
