"""OpenAI's Responses API: single questions that OpenAI does not store, with a summary of the reasoning."""

from typing import Any

from judges.providers.base import DESCRIPTION, TOOL, add_extra_body, add_parameters
from judges.providers.openai import REQUIRED_COUNTS, RESPONSES_USED, OpenAIProvider, is_strict
from judges.providers.received import Received
from judges.providers.replies import count_tokens, get_list, get_path, read_tokens, storable_text
from judges.records import Judge, ModelRequest, Reply

UNFINISHED = {"max_output_tokens": "length", "content_filter": "refusal"}


class ResponsesProvider(OpenAIProvider):
    """Provider for OpenAI's Responses API: POST <base_url>/responses."""

    async def send(self, request: ModelRequest, received: Received) -> None:
        body, options = self.body(request), self.options(request, received)
        model, question = body.pop("model"), body.pop("input")
        responses = self.client.responses.with_streaming_response
        await self.keep(responses.create(model=model, input=question, extra_body=body, **options), received)

    def body(self, request: ModelRequest) -> dict[str, Any]:
        system, question = request.prompt.messages
        # Mode json_object needs the word "json" in the input: the system message contains it.
        if request.judge.schema_mode == "json_object":
            question_fields: dict[str, Any] = {"input": [system, question]}
        else:
            question_fields = {"instructions": request.prompt.system, "input": [question]}
        body = {"model": request.judge.model, **question_fields, "store": False, **response_format(request)}
        add_parameters(body, request.judge)
        if request.judge.alternatives:
            body |= {"include": ["message.output_text.logprobs"], "top_logprobs": request.judge.alternatives}
        return add_extra_body(body, request.judge)

    def read(self, body: dict[str, Any], judge: Judge) -> Reply | None:
        """Return the messages' text, or in mode `tool` the tool's arguments; a part that declines is a refusal."""
        if not isinstance(body.get("output"), list) and "usage" not in body:
            return None
        items = get_list(body, "output")
        parts = [part for item in items if get_path(item, "type") == "message" for part in get_list(item, "content")]
        calls = [item for item in items if judge.schema_mode == "tool" and get_path(item, "type") == "function_call"]
        text = "\n".join(storable_text(get_path(call, "arguments")) for call in calls)
        text = text or "".join(storable_text(get_path(part, "text")) for part in parts)
        # OpenAI's models return only a summary of their reasoning.
        reasoning_items = [item for item in items if get_path(item, "type") == "reasoning"]
        steps = [step for item in reasoning_items for step in [*get_list(item, "content"), *get_list(item, "summary")]]
        refusal = "".join(storable_text(get_path(part, "refusal")) for part in parts)
        finish = storable_text(get_path(body, "incomplete_details", "reason"), 50)
        state = storable_text(body.get("status"), 50)  # Failed, cancelled, in_progress: no complete answer.
        finish = finish or ("stop" if state in ("completed", "") else state)
        token_entries = [entry for part in parts for entry in get_list(part, "logprobs")]
        return Reply(
            text=text or refusal,
            reasoning="\n\n".join(filter(None, (storable_text(get_path(step, "text")) for step in steps))),
            tokens=read_tokens(
                text, token_entries, "token", "logprob", [get_list(entry, "top_logprobs") for entry in token_entries]
            ),
            finish_reason="refusal" if refusal else UNFINISHED.get(finish, finish),
            usage=count_tokens(body.get("usage"), RESPONSES_USED, REQUIRED_COUNTS),
        )


def response_format(request: ModelRequest) -> dict[str, Any]:
    schema, strict = request.schema, is_strict(request.schema)
    match request.judge.schema_mode:
        case "json_schema":
            return {"text": {"format": {"type": "json_schema", "name": TOOL, "schema": schema, "strict": strict}}}
        case "json_object":
            return {"text": {"format": {"type": "json_object"}}}
        case "tool":
            function = {"type": "function", "name": TOOL}
            tool = {**function, "description": DESCRIPTION, "parameters": schema, "strict": strict}
            return {"tools": [tool], "tool_choice": function, "parallel_tool_calls": False}
    return {}
