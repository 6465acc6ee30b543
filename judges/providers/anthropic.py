"""Anthropic: messages with an answer bound to a JSON schema. It takes no temperature, top_p or log-probabilities."""

from typing import Any

import httpx2
from anthropic import AsyncAnthropic

from judges.providers.base import SdkProvider, dumped
from judges.providers.replies import count, entries, get, text
from judges.records import Judge, Reply, Request, Usage

FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
}


class AnthropicProvider(SdkProvider):
    """POST <base_url>/v1/messages."""

    key_header = "x-api-key"
    key_prefix = ""

    def __init__(self, judge: Judge) -> None:
        super().__init__(judge)
        self.client = AsyncAnthropic(
            api_key="set-as-it-leaves", base_url=self.base_url, http_client=self.http, max_retries=0, timeout=None
        )

    async def send(self, request: Request) -> object:
        """One POST through the SDK's client, as in `OpenAIProvider.send`."""
        return await self.client.post("/v1/messages", cast_to=httpx2.Response, content=dumped(self.body(request)))

    def body(self, request: Request) -> dict[str, Any]:
        """The request as the wire format has it. What never changes comes first and is marked for the prompt cache."""
        system = {"type": "text", "text": request.prompt.system, "cache_control": {"type": "ephemeral"}}
        return {
            "model": request.judge.model,
            "max_tokens": request.judge.max_output_tokens,
            "system": [system],
            "messages": [{"role": "user", "content": request.prompt.user}],
            "output_config": {"format": {"type": "json_schema", "schema": request.schema}},
        }

    def read(self, body: dict[str, Any], raw: str, judge: Judge) -> Reply | None:
        """The text blocks, joined."""
        if not isinstance(body.get("content"), list) and "usage" not in body:
            return None
        finish = text(body.get("stop_reason"), 50)
        return Reply(
            raw=raw,
            text="".join(text(get(block, "text")) for block in entries(body, "content")),
            finish_reason=FINISH.get(finish, finish),
            usage=usage(body.get("usage")),
            model=text(body.get("model"), 200),
        )


def usage(counts: object) -> Usage:
    """Tokens of an answer. Anthropic counts input without what was read from or written to its cache: added here."""
    cached = count(counts, "cache_read_input_tokens")
    written = count(counts, "cache_creation_input_tokens")
    return Usage(
        input=count(counts, "input_tokens") + cached + written,
        cached=cached,
        written=written,
        output=count(counts, "output_tokens"),
        reasoning=count(counts, "output_tokens_details", "thinking_tokens"),
    )
