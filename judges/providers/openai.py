"""OpenAI: chat completions with an answer bound to a JSON schema."""

from typing import Any

import httpx2
from openai import AsyncOpenAI

from judges import prompts
from judges.providers.base import SdkProvider, dumped
from judges.providers.replies import count, entries, get, graded, numbers, text, tokens
from judges.records import Judge, Reply, Request, Usage

FINISH = {"content_filter": "refusal"}


class OpenAIProvider(SdkProvider):
    """POST <base_url>/chat/completions."""

    output_limit = "max_completion_tokens"

    def __init__(self, judge: Judge) -> None:
        super().__init__(judge)
        self.client = AsyncOpenAI(
            api_key="set-as-it-leaves", base_url=self.base_url, http_client=self.http, max_retries=0, timeout=None
        )

    async def send(self, request: Request) -> object:
        """One POST through the SDK's client: its typed methods match every argument against their types, a quarter
        of the time of a call, and send the same bytes (docs/adr/0031).
        """
        path, body = "/chat/completions", self.body
        if request.judge.decides:
            path, body = "/decisions", decision
        return await self.client.post(path, cast_to=httpx2.Response, content=dumped(body(request)))

    def body(self, request: Request) -> dict[str, Any]:
        """The request as the wire format has it. Temperature 0 unless the judge sets another."""
        parameters = request.judge.parameters
        body: dict[str, Any] = {
            "model": request.judge.model,
            "messages": [
                {"role": "system", "content": request.prompt.system},
                {"role": "user", "content": request.prompt.user},
            ],
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "answer", "schema": request.schema, "strict": is_strict(request.schema)},
            },
            "temperature": parameters.get("temperature", 0),
            self.output_limit: request.judge.max_output_tokens,
        }
        if "top_p" in parameters:
            body["top_p"] = parameters["top_p"]
        if parameters.get("logprobs"):
            body |= {"logprobs": True, "top_logprobs": int(parameters["logprobs"])}
        return body

    def read(self, body: dict[str, Any], raw: str, judge: Judge) -> Reply | None:
        """The first choice; a `refusal` in the message is one whatever the finish reason says."""
        if isinstance(body.get("answers"), list):
            return read_decision(body, raw, judge.grades)
        if not isinstance(body.get("choices"), list) and "usage" not in body:
            return None
        choice = get(body, "choices", 0)
        declined = text(get(choice, "message", "refusal"))
        finish = text(get(choice, "finish_reason"), 50)
        said = text(get(choice, "message", "content"))
        listed = entries(choice, "logprobs", "content")
        return Reply(
            raw=raw,
            text=said or declined,
            tokens=tokens(said, listed, "token", "logprob", [entries(one, "top_logprobs") for one in listed]),
            finish_reason="refusal" if declined else FINISH.get(finish, finish),
            usage=usage(body.get("usage")),
            model=text(body.get("model"), 200),
        )


def decision(request: Request) -> dict[str, Any]:
    """One question of the Decisions endpoint: which level of the judge's scale?"""
    meanings = prompts.levels(request.judge.grades)
    levels = [{"label": str(grade), "description": meaning} for grade, meaning in enumerate(meanings)]
    question = {"type": "score", "name": "relevance", "instructions": request.prompt.system, "levels": levels}
    return {"model": request.judge.model, "input": request.prompt.user, "questions": [question]}


def read_decision(body: dict[str, Any], raw: str, grades: int) -> Reply | None:
    """The probabilities of the first answer's levels, and the likeliest as the verdict."""
    answer, counts = get(body, "answers", 0), body.get("usage")
    used = Usage(
        input=count(counts, "input_tokens"),
        cached=count(counts, "input_tokens_details", "cached_tokens"),
        written=count(counts, "input_tokens_details", "cache_write_tokens"),
        output=count(counts, "output_tokens"),
        reasoning=count(counts, "output_tokens_details", "reasoning_tokens"),
    )
    model = text(body.get("model"), 200)
    if get(answer, "type") == "refusal":
        return Reply(raw=raw, text="", finish_reason="refusal", usage=used, model=model)
    listed = entries(answer, "probabilities")
    shares = {get(one, "value"): get(one, "probability") for one in listed}
    found = graded(shares, grades) if numbers(shares) else None
    if found is None:
        return None
    return Reply(raw=raw, text=found[0], finish_reason="stop", usage=used, model=model, probabilities=found[1])


def usage(counts: object) -> Usage:
    """Tokens of an answer; `prompt_tokens` includes the cached, `completion_tokens` the reasoning ones."""
    return Usage(
        input=count(counts, "prompt_tokens"),
        cached=count(counts, "prompt_tokens_details", "cached_tokens"),
        output=count(counts, "completion_tokens"),
        reasoning=count(counts, "completion_tokens_details", "reasoning_tokens"),
    )


def is_strict(schema: dict[str, Any]) -> bool:
    """Strict schemas require every property and allow no other."""
    return schema.get("additionalProperties") is False and set(schema.get("required", ())) == set(schema["properties"])
