"""Messages, as Anthropic has them. They give no log-probabilities."""

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

# Whatever is not named here ("pause_turn") is no good end, and no vote.
FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
}
# Anthropic counts input without what was read from or written to its cache: added here.
USED = {
    "input": "input_tokens + cache_read_input_tokens + cache_creation_input_tokens",
    "cached": "cache_read_input_tokens",
    "written": "cache_creation_input_tokens",
    "output": "output_tokens",
    "reasoning": "output_tokens_details.thinking_tokens",
}
SAID = ("input_tokens", "output_tokens")

# It would write a call's headers into a log of level DEBUG, the key included.
logging.getLogger("anthropic").setLevel(logging.INFO)
SIDES = frozenset(Side)
# A breakpoint: what stands before it may be kept, and read at a tenth of the price by a call that begins alike.
KEPT = {"type": "ephemeral"}
IN_ONE_COUNTRY = 1.1  # Times the price, for answers that are made in the United States alone.
MARKS = 2  # Breakpoints of a user message, at most: of the four that a request may have.


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
        """Send one call. Fields that the SDK's types do not know go as `extra_body`, as in `OpenAIProvider.send`."""
        body = self.body(request)
        typed = {name: body.pop(name) for name in ("model", "max_tokens", "messages")}
        headers = self.headers(request.judge, received)
        call = self.client.messages.with_streaming_response.create(**typed, extra_body=body, extra_headers=headers)
        await self.keep(call, received)

    def body(self, request: ModelRequest) -> dict[str, Any]:
        """The request as the wire format has it, with breakpoints of the prompt cache where other calls go on alike."""
        kept = {"cache_control": KEPT} if self.preset.cache == "marked" else {}
        body = {
            "model": request.judge.model,
            "system": [{"type": "text", "text": request.prompt.system, **kept}],
            "messages": [{"role": "user", "content": content_blocks(request, kept)}],
            **response_format(request),
        }
        return add_extra_body(add_parameters(body, request.judge), request.judge)

    def read(self, body: dict[str, Any], judge: Judge) -> Reply | None:
        """Return the text blocks, joined, or in mode `tool` the input of the called tool."""
        if not isinstance(body.get("content"), list) and "usage" not in body:
            return None
        finish = storable_text(body.get("stop_reason"), 50)
        content = get_list(body, "content")
        used = [block for block in content if judge.schema_mode == "tool" and get_path(block, "type") == "tool_use"]
        given = [json.dumps(get_path(block, "input"), ensure_ascii=False) for block in used]
        return Reply(
            text="\n".join(given) if given else "".join(storable_text(get_path(block, "text")) for block in content),
            reasoning="".join(storable_text(get_path(block, "thinking")) for block in content),
            finish_reason=FINISH.get(finish, finish),
            usage=count_tokens(body.get("usage"), USED, SAID),
            tier="fast" if get_path(body, "usage", "speed") == "fast" else "",
            surcharge=IN_ONE_COUNTRY if get_path(body, "usage", "inference_geo") == "us" else 1.0,
        )


def response_format(request: ModelRequest) -> dict[str, Any]:
    schema = request.schema
    if request.judge.schema_mode == "json_schema":
        return {"output_config": {"format": {"type": "json_schema", "schema": schema}}}
    if request.judge.schema_mode == "tool":
        tool = {"name": TOOL, "description": DESCRIPTION, "input_schema": schema}
        # A model that thinks cannot be made to call a tool: it decides after its thoughts, and the prompt asks it to.
        judge = request.judge
        free = bool(judge.parameters.get("thinking")) or thinks_by_name(judge.model, judge.preset)
        return {"tools": [tool], "tool_choice": {"type": "auto"} if free else {"type": "tool", "name": TOOL}}
    return {}


def content_blocks(request: ModelRequest, kept: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the user message, cut where it stops repeating, each part but the last with the mark `kept`."""
    # After the query, which the next document shares, and in a debate after the document, which the
    # next round shares. Writing to the cache costs more than other input, so what one call alone
    # reads is not marked.
    user = request.prompt.user
    if request.role == "search":  # an agent's next step goes on behind the last round, and begins with the one before
        ends = render.block_ends(user)
    else:
        ends = render.block_ends(user, 2 if request.role in SIDES else 1)
    cuts = [user[start:end] for start, end in pairwise([0, *ends, len(user)])]
    unmarked = max(0, len(ends) - MARKS)
    blocks = [{"type": "text", "text": text, **(kept if at >= unmarked else {})} for at, text in enumerate(cuts[:-1])]
    return [*blocks, {"type": "text", "text": cuts[-1]}]
