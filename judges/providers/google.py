"""generateContent, as Google has it."""

import json
from typing import Any

from google import genai
from google.genai import types

from judges import prompts
from judges.providers.base import SdkProvider
from judges.providers.bodies import DESCRIPTION, TOOL, fill
from judges.providers.replies import count, counted, entries, get, graded, numbers, text, tokens
from judges.records import Judge, Reply, Request, Usage

FINISH = {"STOP": "stop", "MAX_TOKENS": "length"} | dict.fromkeys(
    ("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE"), "refusal"
)


class GoogleProvider(SdkProvider):
    """POST <base_url>/v1beta/models/<model>:generateContent."""

    key_header = "x-goog-api-key"
    key_prefix = ""
    api_version = "v1beta"

    def __init__(self, judge: Judge) -> None:
        super().__init__(judge)
        options = types.HttpOptions(
            base_url=self.base_url,
            api_version=self.api_version,
            httpx_async_client=self.http,
            retry_options=types.HttpRetryOptions(attempts=1),
        )
        # The client is kept: one made in passing would close itself.
        self.client = self.open_client(judge, options)

    def open_client(self, judge: Judge, options: types.HttpOptions) -> genai.Client:
        """The SDK's client of the account."""
        return genai.Client(api_key="set-as-it-leaves", vertexai=False, http_options=options)

    async def send(self, request: Request) -> object:
        """One `generate_content`, which returns the HTTP response unparsed."""
        if request.judge.decides:
            return await self.client.aio.decisions.create(**decision(request))
        config = self.config(request)
        config.automatic_function_calling = types.AutomaticFunctionCallingConfig(disable=True)
        config.should_return_http_response = True
        return await self.client.aio.models.generate_content(
            model=request.judge.model, contents=request.prompt.user, config=config
        )

    def config(self, request: Request) -> types.GenerateContentConfig:
        """Everything but the question, under the SDK's names."""
        judge, given = request.judge, request.judge.parameters
        fields: dict[str, Any] = {"system_instruction": request.prompt.system, **form(request)}
        fill(fields, judge)
        if "thinking_config" in fields:
            fields["thinking_config"] = types.ThinkingConfig(**{"include_thoughts": True, **fields["thinking_config"]})
        if "safety_settings" in given:
            settings = given["safety_settings"].items()
            fields["safety_settings"] = [types.SafetySetting(category=name, threshold=most) for name, most in settings]
        if judge.alternatives:
            fields |= {"response_logprobs": True, "logprobs": judge.alternatives}
        if given.keys() & {"extra_body", "extra_headers"}:
            more = {"extra_body": given.get("extra_body"), "headers": given.get("extra_headers")}
            fields["http_options"] = types.HttpOptions(**more)
        return types.GenerateContentConfig(**fields)

    def read(self, body: dict[str, Any], raw: str, judge: Judge) -> Reply | None:
        """The first candidate without its thoughts; a blocked prompt has no candidate and is a refusal."""
        if isinstance(body.get("answers"), dict) or isinstance(body.get("prompt_feedback"), dict):
            return read_decision(body, raw, judge.grades)
        blocked = get(body, "promptFeedback", "blockReason")
        if not isinstance(body.get("candidates"), list) and not blocked and "usageMetadata" not in body:
            return None
        candidate = get(body, "candidates", 0)
        parts = entries(candidate, "content", "parts")
        finish = "SAFETY" if blocked and candidate is None else text(get(candidate, "finishReason"), 50)
        said = answer_in(parts, judge)
        chosen = entries(candidate, "logprobsResult", "chosenCandidates")
        others = [entries(one, "candidates") for one in entries(candidate, "logprobsResult", "topCandidates")]
        return Reply(
            raw=raw,
            text=said,
            reasoning="".join(text(get(part, "text")) for part in parts if get(part, "thought")),
            tokens=tokens(said, chosen, "token", "logProbability", others),
            finish_reason=FINISH.get(finish, finish),
            usage=usage(body.get("usageMetadata"), answered=bool(said)),
            model=text(body.get("modelVersion"), 200),
        )


def form(request: Request) -> dict[str, Any]:
    """What binds the answer to its form, by the judge's schema mode."""
    match request.judge.schema_mode:
        case "json_schema":
            return {"response_mime_type": "application/json", "response_json_schema": request.schema}
        case "json_object":
            return {"response_mime_type": "application/json"}
        case "tool":
            function = types.FunctionDeclaration(
                name=TOOL, description=DESCRIPTION, parameters_json_schema=request.schema
            )
            forced = types.FunctionCallingConfig(
                mode=types.FunctionCallingConfigMode.ANY, allowed_function_names=[TOOL]
            )
            return {
                "tools": [types.Tool(function_declarations=[function])],
                "tool_config": types.ToolConfig(function_calling_config=forced),
            }
    return {}


def answer_in(parts: list[Any], judge: Judge) -> str:
    """The text of an answer without its thoughts, or in mode `tool` the arguments of the function that it calls."""
    calls = [call for part in parts if isinstance(call := get(part, "functionCall"), dict)]
    if calls and judge.schema_mode == "tool":
        return "\n".join(json.dumps(call.get("args"), ensure_ascii=False) for call in calls)
    return "".join(text(get(part, "text")) for part in parts if not get(part, "thought"))


def decision(request: Request) -> dict[str, Any]:
    """One question of the Decisions endpoint: which level of the judge's scale?"""
    levels = list(prompts.levels(request.judge.grades))
    question = {"type": "score", "instructions": request.prompt.system, "criteria": levels}
    name = request.judge.model
    model = name if name.startswith("models/") else f"models/{name}"
    return {"model": model, "input": request.prompt.user, "questions": {"relevance": question}}


def read_decision(body: dict[str, Any], raw: str, grades: int) -> Reply | None:
    """The probabilities of the answer's levels, and the likeliest as the verdict; a blocked input is a refusal."""
    counts, answer = body.get("usage"), get(body, "answers", "relevance")
    used = Usage(
        input=count(counts, "total_input_tokens"),
        cached=count(counts, "total_cached_tokens"),
        output=count(counts, "total_output_tokens") + count(counts, "total_thought_tokens"),
        reasoning=count(counts, "total_thought_tokens"),
        said=counted(counts, "total_input_tokens", *(["total_output_tokens"] if answer is not None else [])),
    )
    if answer is None and isinstance(body.get("prompt_feedback"), dict):
        return Reply(raw=raw, text="", finish_reason="refusal", usage=used)
    listed = get(answer, "probabilities")
    shares = {int(key): value for key, value in listed.items() if key.isdecimal()} if isinstance(listed, dict) else {}
    found = graded(shares, grades) if numbers(shares) else None
    return found and Reply(raw=raw, text=found[0], finish_reason="stop", usage=used, probabilities=found[1])


def usage(counts: object, *, answered: bool = True) -> Usage:
    """Tokens of an answer. Thoughts are billed as output and counted beside it: added here. Where nothing was
    `answered`, the answer's own count is left out, and is none.
    """
    reasoning = count(counts, "thoughtsTokenCount")
    return Usage(
        input=count(counts, "promptTokenCount"),
        cached=count(counts, "cachedContentTokenCount"),
        output=count(counts, "candidatesTokenCount") + reasoning,
        reasoning=reasoning,
        said=counted(counts, "promptTokenCount", *(["candidatesTokenCount"] if answered else [])),
    )
