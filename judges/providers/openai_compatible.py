"""Any server that speaks OpenAI's chat completions: vLLM, Ollama, DeepSeek, Qwen and others."""

from judges.providers.openai import OpenAIProvider
from judges.records import Judge


class CompatibleProvider(OpenAIProvider):
    """The same call under the names that such servers know; a server without a key gets no credentials."""

    output_limit = "max_tokens"

    def __init__(self, judge: Judge) -> None:
        super().__init__(judge)
        # The SDK reads these from the environment; they are no business of another company's server.
        self.client.organization = self.client.project = None
