"""Google: generateContent with an answer bound to a JSON schema."""

from typing import Any

from google import genai
from google.genai import types

from judges.providers.base import SdkProvider
from judges.providers.replies import count, entries, get, text
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
        parameters = request.judge.parameters
        config = types.GenerateContentConfig(
            system_instruction=request.prompt.system,
            response_mime_type="application/json",
            response_json_schema=request.schema,
            temperature=parameters.get("temperature", 0),
            top_p=parameters.get("top_p"),
            max_output_tokens=request.judge.max_output_tokens,
            response_logprobs=True if parameters.get("logprobs") else None,
            logprobs=int(parameters["logprobs"]) if parameters.get("logprobs") else None,
            automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
            should_return_http_response=True,
        )
        return await self.client.aio.models.generate_content(
            model=request.judge.model, contents=request.prompt.user, config=config
        )

    def read(self, body: dict[str, Any], raw: str) -> Reply | None:
        """The first candidate without its thoughts; a blocked prompt has no candidate and is a refusal."""
        blocked = get(body, "promptFeedback", "blockReason")
        if not isinstance(body.get("candidates"), list) and not blocked and "usageMetadata" not in body:
            return None
        candidate = get(body, "candidates", 0)
        parts = entries(candidate, "content", "parts")
        finish = "SAFETY" if blocked and candidate is None else text(get(candidate, "finishReason"), 50)
        return Reply(
            raw=raw,
            text="".join(text(get(part, "text")) for part in parts if not get(part, "thought")),
            finish_reason=FINISH.get(finish, finish),
            usage=usage(body.get("usageMetadata")),
            model=text(body.get("modelVersion"), 200),
        )


def usage(counts: object) -> Usage:
    """Tokens of an answer. Thoughts are billed as output and counted beside it: added here."""
    reasoning = count(counts, "thoughtsTokenCount")
    return Usage(
        input=count(counts, "promptTokenCount"),
        cached=count(counts, "cachedContentTokenCount"),
        output=count(counts, "candidatesTokenCount") + reasoning,
        reasoning=reasoning,
    )
