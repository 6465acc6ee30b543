"""Google: generateContent with an answer bound to a JSON schema."""

from typing import Any

from google import genai
from google.genai import types

from judges import prompts
from judges.providers.base import SdkProvider
from judges.providers.replies import count, entries, get, graded, numbers, text, tokens
from judges.records import Judge, Reply, Request, Usage

FINISH = {"STOP": "stop", "MAX_TOKENS": "length"} | dict.fromkeys(
    ("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE"), "refusal"
)


class GoogleProvider(SdkProvider):
    """POST <base_url>/v1beta/models/<model>:generateContent."""

    key_header = "x-goog-api-key"
    key_prefix = ""

    def __init__(self, judge: Judge) -> None:
        super().__init__(judge)
        options = types.HttpOptions(
            base_url=self.base_url,
            api_version="v1beta",
            httpx_async_client=self.http,
            retry_options=types.HttpRetryOptions(attempts=1),
        )
        # The client is kept: one made in passing would close itself.
        self.client = genai.Client(api_key="set-as-it-leaves", vertexai=False, http_options=options)

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
        """Everything but the question. Temperature 0 unless the judge sets another."""
        parameters = request.judge.parameters
        return types.GenerateContentConfig(
            system_instruction=request.prompt.system,
            response_mime_type="application/json",
            response_json_schema=request.schema,
            temperature=parameters.get("temperature", 0),
            top_p=parameters.get("top_p"),
            max_output_tokens=request.judge.max_output_tokens,
            response_logprobs=True if parameters.get("logprobs") else None,
            logprobs=int(parameters["logprobs"]) if parameters.get("logprobs") else None,
        )

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
        said = "".join(text(get(part, "text")) for part in parts if not get(part, "thought"))
        chosen = entries(candidate, "logprobsResult", "chosenCandidates")
        others = [entries(one, "candidates") for one in entries(candidate, "logprobsResult", "topCandidates")]
        return Reply(
            raw=raw,
            text=said,
            tokens=tokens(said, chosen, "token", "logProbability", others),
            finish_reason=FINISH.get(finish, finish),
            usage=usage(body.get("usageMetadata")),
            model=text(body.get("modelVersion"), 200),
        )


def decision(request: Request) -> dict[str, Any]:
    """One question of the Decisions endpoint: which level of the judge's scale?"""
    levels = list(prompts.levels(request.judge.grades))
    question = {"type": "score", "instructions": request.prompt.system, "criteria": levels}
    name = request.judge.model
    model = name if name.startswith("models/") else f"models/{name}"
    return {"model": model, "input": request.prompt.user, "questions": {"relevance": question}}


def read_decision(body: dict[str, Any], raw: str, grades: int) -> Reply | None:
    """The probabilities of the answer's levels, and the likeliest as the verdict; a blocked input is a refusal."""
    counts = body.get("usage")
    used = Usage(
        input=count(counts, "total_input_tokens"),
        cached=count(counts, "total_cached_tokens"),
        output=count(counts, "total_output_tokens") + count(counts, "total_thought_tokens"),
        reasoning=count(counts, "total_thought_tokens"),
    )
    answer = get(body, "answers", "relevance")
    if answer is None and isinstance(body.get("prompt_feedback"), dict):
        return Reply(raw=raw, text="", finish_reason="refusal", usage=used)
    listed = get(answer, "probabilities")
    shares = {int(key): value for key, value in listed.items() if key.isdecimal()} if isinstance(listed, dict) else {}
    found = graded(shares, grades) if numbers(shares) else None
    return found and Reply(raw=raw, text=found[0], finish_reason="stop", usage=used, probabilities=found[1])


def usage(counts: object) -> Usage:
    """Tokens of an answer. Thoughts are billed as output and counted beside it: added here."""
    reasoning = count(counts, "thoughtsTokenCount")
    return Usage(
        input=count(counts, "promptTokenCount"),
        cached=count(counts, "cachedContentTokenCount"),
        output=count(counts, "candidatesTokenCount") + reasoning,
        reasoning=reasoning,
    )
