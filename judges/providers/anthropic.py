"""Anthropic's Messages API. It gives no log-probabilities."""

import json
import logging
from itertools import pairwise
from typing import Any

from anthropic import AsyncAnthropic, DefaultAioHttpClient, Omit

from judges.presets.thinking import thinks_by_name
from judges.prompts import render
from judges.providers.base import DESCRIPTION, PLACEHOLDER, TOOL, SdkProvider, add_extra_body, add_parameters
from judges.providers.received import Received
from judges.providers.replies import count_tokens, get_list, get_path, storable_text
from judges.records import Judge, ModelRequest, Reply, Side

# Any other reason ("pause_turn") means an incomplete answer, which is not a vote.
FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
}
# Anthropic counts input without tokens read from or written to its cache: they are added here.
USED = {
    "input": "input_tokens + cache_read_input_tokens + cache_creation_input_tokens",
    "cached": "cache_read_input_tokens",
    "written": "cache_creation_input_tokens",
    "output": "output_tokens",
    "reasoning": "output_tokens_details.thinking_tokens",
}
REQUIRED_COUNTS = ("input_tokens", "output_tokens")

# At level DEBUG the SDK would log a call's headers, including the key.
logging.getLogger("anthropic").setLevel(logging.INFO)
SIDES = frozenset(Side)
# A cache breakpoint: a call that begins with the same text reads it from the cache at a tenth of the price.
BREAKPOINT = {"type": "ephemeral"}
IN_ONE_COUNTRY = 1.1  # Factor on the price of answers that are generated only in the United States.
MARKS = 2  # Breakpoints in a user message, at most; a request may have four.


class AnthropicProvider(SdkProvider):
    """Provider for Anthropic's API: POST <base_url>/v1/messages."""

    key_header = "X-Api-Key"
    key_prefix = ""
    own_headers = {"X-Api-Key": Omit(), "Authorization": Omit()}

    def __init__(self, judge: Judge) -> None:
        super().__init__(judge)
        self.client = self.open_client(judge)

    def open_client(self, judge: Judge) -> Any:
        return AsyncAnthropic(api_key=PLACEHOLDER, base_url=self.base_url, **self.client_options(DefaultAioHttpClient))

    async def send(self, request: ModelRequest, received: Received) -> None:
        """Send one call. Fields that the SDK's types lack go into `extra_body`, as in `OpenAIProvider.send`."""
        body = self.body(request)
        typed = {name: body.pop(name) for name in ("model", "max_tokens", "messages")}
        headers = self.headers(request.judge, received)
        call = self.client.messages.with_streaming_response.create(**typed, extra_body=body, extra_headers=headers)
        await self.keep(call, received)

    def body(self, request: ModelRequest) -> dict[str, Any]:
        """Return the body of the request, with cache breakpoints after the text that other calls share."""
        cache_control = {"cache_control": BREAKPOINT} if self.preset.cache == "marked" else {}
        body = {
            "model": request.judge.model,
            "system": [{"type": "text", "text": request.prompt.system, **cache_control}],
            "messages": [{"role": "user", "content": content_blocks(request, cache_control)}],
            **response_format(request),
        }
        return add_extra_body(add_parameters(body, request.judge), request.judge)

    def read(self, body: dict[str, Any], judge: Judge) -> Reply | None:
        """Return the joined text blocks, or in mode `tool` the input of the called tool, as a reply."""
        if not isinstance(body.get("content"), list) and "usage" not in body:
            return None
        finish = storable_text(body.get("stop_reason"), 50)
        content = get_list(body, "content")
        tool_calls = [
            block for block in content if judge.schema_mode == "tool" and get_path(block, "type") == "tool_use"
        ]
        tool_inputs = [json.dumps(get_path(block, "input"), ensure_ascii=False) for block in tool_calls]
        return Reply(
            text="\n".join(tool_inputs)
            if tool_inputs
            else "".join(storable_text(get_path(block, "text")) for block in content),
            reasoning="".join(storable_text(get_path(block, "thinking")) for block in content),
            finish_reason=FINISH.get(finish, finish),
            usage=count_tokens(body.get("usage"), USED, REQUIRED_COUNTS),
            tier="fast" if get_path(body, "usage", "speed") == "fast" else "",
            surcharge=IN_ONE_COUNTRY if get_path(body, "usage", "inference_geo") == "us" else 1.0,
        )


def response_format(request: ModelRequest) -> dict[str, Any]:
    schema = request.schema
    if request.judge.schema_mode == "json_schema":
        return {"output_config": {"format": {"type": "json_schema", "schema": schema}}}
    if request.judge.schema_mode == "tool":
        tool = {"name": TOOL, "description": DESCRIPTION, "input_schema": schema}
        # A thinking model cannot be forced to call a tool: the prompt asks it to, and it decides after thinking.
        judge = request.judge
        is_thinking = bool(judge.parameters.get("thinking")) or thinks_by_name(judge.model, judge.preset)
        return {"tools": [tool], "tool_choice": {"type": "auto"} if is_thinking else {"type": "tool", "name": TOOL}}
    return {}


def content_blocks(request: ModelRequest, cache_control: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the user message in parts that other calls share, each but the last with the breakpoint."""
    # The parts end after the query, which the next document shares, and in a debate after the document, which the
    # next round shares. Writing to the cache costs more than other input, so text of a single call is not marked.
    # All rounds of a search agent are shared: its next step continues after the last one.
    user = request.prompt.user
    shared_blocks = None if request.role == "search" else 2 if request.role in SIDES else 1
    ends = render.block_ends(user, shared_blocks)
    parts = [user[start:end] for start, end in pairwise([0, *ends, len(user)])]
    unmarked = max(0, len(ends) - MARKS)
    blocks = [
        {"type": "text", "text": text, **(cache_control if index >= unmarked else {})}
        for index, text in enumerate(parts[:-1])
    ]
    return [*blocks, {"type": "text", "text": parts[-1]}]
