"""Google's generateContent API."""

import json
from contextvars import ContextVar
from typing import Any

import aiohttp
import httpx2
from google import genai
from google.genai import types

from judges.prompts import render
from judges.providers.base import DESCRIPTION, PLACEHOLDER, TOOL, UNPACKED, SdkProvider, add_parameters
from judges.providers.connections import CONNECTIONS, IDLE_S, http_client
from judges.providers.received import SECRET, Received
from judges.providers.replies import (
    count_tokens,
    get_list,
    get_path,
    likeliest_grade,
    read_tokens,
    storable_text,
)
from judges.records import Judge, ModelRequest, Reply

# Any other reason means an incomplete answer, which is not a vote.
FINISH = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "PUP_LIMITED_DISABLED": "limited",
} | dict.fromkeys(
    (
        *("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE", "ESCALATION", "MODEL_ARMOR"),
        *("IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION", "IMAGE_OTHER"),
    ),
    "refusal",
)
# Thoughts are billed as output but counted separately: they are added here.
USED = {
    "input": "promptTokenCount",
    "cached": "cachedContentTokenCount",
    "output": "candidatesTokenCount + thoughtsTokenCount",
    "reasoning": "thoughtsTokenCount",
    "total": "totalTokenCount",
}
REQUIRED_COUNTS = ("promptTokenCount", "candidatesTokenCount")
DECISION_USED = {
    "input": "total_input_tokens",
    "cached": "total_cached_tokens",
    "output": "total_output_tokens + total_thought_tokens",
    "reasoning": "total_thought_tokens",
}

# The `Received` of the current task's call, for the hooks of the HTTP clients, which have no other access to it.
_current: ContextVar[Received] = ContextVar("received")


class GoogleProvider(SdkProvider):
    """Provider for Google's API: POST <base_url>/v1beta/models/<model>:generateContent."""

    key_header = "x-goog-api-key"
    key_prefix = ""
    model_key = "modelVersion"
    api_version = "v1beta"

    def __init__(self, judge: Judge) -> None:
        super().__init__(judge)
        self.session: aiohttp.ClientSession | None = None
        self.http: httpx2.AsyncClient | None = None
        self.clients: dict[tuple[object, ...], genai.Client] = {}

    def client_of(self, judge: Judge) -> genai.Client:
        """Return the SDK's client for the judge. It is stored, since a temporary client would close itself."""
        plain = judge.decides or self.route.is_socks
        key = (plain, *self.place(judge))
        if key not in self.clients:
            self.clients[key] = self.open_client(judge, self.options(plain=plain))
        return self.clients[key]

    def place(self, judge: Judge) -> tuple[str, ...]:
        """Return the settings in which the clients of one account differ."""
        return ()

    def open_client(self, judge: Judge, options: types.HttpOptions) -> genai.Client:
        return genai.Client(api_key=PLACEHOLDER, vertexai=False, http_options=options)

    def options(self, *, plain: bool) -> types.HttpOptions:
        """Return the HTTP options: by aiohttp, or if `plain` by httpx2, which decisions and SOCKS proxies need."""
        verify = self.route.tls or False
        if plain and self.http is None:

            async def keep_body(response: httpx2.Response) -> None:
                await response.aread()
                await _current.get().read_body(response.status_code, response.headers, response.aiter_bytes())

            hooks = {"request": [_add_credentials], "response": [keep_body]}
            self.http = http_client(httpx2.AsyncClient, self.route, event_hooks=hooks)
        if not plain and self.session is None:
            connector = aiohttp.TCPConnector(limit=CONNECTIONS, keepalive_timeout=IDLE_S)
            self.session = aiohttp.ClientSession(connector=connector, middlewares=[_receive_body])
        proxy = self.route.proxy
        proxy_options = {"proxy": str(proxy.url), "proxy_headers": dict(proxy.headers)} if proxy and not plain else {}
        return types.HttpOptions(
            base_url=self.base_url,
            api_version=self.api_version,
            headers=dict(UNPACKED),
            retry_options=types.HttpRetryOptions(attempts=1),
            client_args={"verify": verify, "trust_env": False},
            async_client_args={"ssl": verify, "allow_redirects": False, **proxy_options},
            aiohttp_client=None if plain else self.session,
            httpx_async_client=self.http if plain else None,
        )

    async def send(self, request: ModelRequest, received: Received) -> None:
        """Send one `generate_content` call, which returns the unparsed HTTP response, or a decision."""
        client, token = self.client_of(request.judge), _current.set(received)
        try:
            if request.judge.decides:
                await client.aio.decisions.create(**decision_body(request))
                return
            config = self.config(request)
            config.automatic_function_calling = types.AutomaticFunctionCallingConfig(disable=True)
            config.should_return_http_response = True
            await client.aio.models.generate_content(
                model=request.judge.model, contents=request.prompt.user, config=config
            )
        finally:
            _current.reset(token)

    async def close(self) -> None:
        if self.session is not None:
            await self.session.close()
        if self.http is not None:
            await self.http.aclose()

    def config(self, request: ModelRequest) -> types.GenerateContentConfig:
        """Return all settings of a call, under the SDK's names."""
        judge, parameters = request.judge, request.judge.parameters
        fields: dict[str, Any] = {"system_instruction": request.prompt.system or None, **response_format(request)}
        add_parameters(fields, judge)
        if "thinking_config" in fields:
            fields["thinking_config"] = types.ThinkingConfig(**{"include_thoughts": True, **fields["thinking_config"]})
        if "safety_settings" in parameters:
            settings = parameters["safety_settings"].items()
            fields["safety_settings"] = [
                types.SafetySetting(category=name, threshold=threshold) for name, threshold in settings
            ]
        if judge.alternatives:
            fields |= {"response_logprobs": True, "logprobs": judge.alternatives}
        if parameters.keys() & {"extra_body", "extra_headers"}:
            call_options = {"extra_body": parameters.get("extra_body"), "headers": parameters.get("extra_headers")}
            fields["http_options"] = types.HttpOptions(**call_options)
        return types.GenerateContentConfig(**fields)

    def read(self, body: dict[str, Any], judge: Judge) -> Reply | None:
        """Return the first candidate without its thoughts; a blocked prompt, without a candidate, is a refusal."""
        if isinstance(body.get("answers"), dict) or isinstance(body.get("prompt_feedback"), dict):
            return read_decision(body, judge.grades)
        blocked = get_path(body, "promptFeedback", "blockReason")
        if not isinstance(body.get("candidates"), list) and not blocked and "usageMetadata" not in body:
            return None
        candidate = get_path(body, "candidates", 0)
        parts = get_list(candidate, "content", "parts")
        finish = "SAFETY" if blocked and candidate is None else storable_text(get_path(candidate, "finishReason"), 50)
        text = answer_in(parts, judge)
        chosen_tokens = get_list(candidate, "logprobsResult", "chosenCandidates")
        alternatives = [
            get_list(position, "candidates") for position in get_list(candidate, "logprobsResult", "topCandidates")
        ]
        return Reply(
            text=text,
            reasoning="".join(storable_text(get_path(part, "text")) for part in parts if get_path(part, "thought")),
            tokens=read_tokens(text, chosen_tokens, "token", "logProbability", alternatives),
            finish_reason=FINISH.get(finish, finish),
            # Without an answer, its token count is missing.
            usage=count_tokens(body.get("usageMetadata"), USED, REQUIRED_COUNTS if text else REQUIRED_COUNTS[:1]),
        )


async def _receive_body(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Set the call's key and read the body, as a middleware of aiohttp."""
    # The SDK would wait for a complete answer, and lose the beginning of a broken one.
    received = _current.get()
    await _add_credentials(request)
    response = await handler(request)
    try:
        await received.read_body(response.status, response.headers, response.content.iter_any())
    finally:
        if not received.whole:
            response.close()
    return response


async def _add_credentials(request: httpx2.Request | aiohttp.ClientRequest) -> None:
    """Set the call's key; also a hook of httpx2."""
    for name in SECRET:
        request.headers.pop(name, None)
    request.headers.update(_current.get().credentials)


def response_format(request: ModelRequest) -> dict[str, Any]:
    match request.judge.schema_mode:
        case "json_schema":
            return {"response_mime_type": "application/json", "response_json_schema": request.schema}
        case "json_object":
            return {"response_mime_type": "application/json"}
        case "tool":
            function = types.FunctionDeclaration(
                name=TOOL, description=DESCRIPTION, parameters_json_schema=request.schema
            )
            function_calling = types.FunctionCallingConfig(
                mode=types.FunctionCallingConfigMode.ANY, allowed_function_names=[TOOL]
            )
            return {
                "tools": [types.Tool(function_declarations=[function])],
                "tool_config": types.ToolConfig(function_calling_config=function_calling),
            }
    return {}


def answer_in(parts: list[Any], judge: Judge) -> str:
    """Return the text of an answer without its thoughts, or in mode `tool` the arguments of the called function."""
    calls = [call for part in parts if isinstance(call := get_path(part, "functionCall"), dict)]
    if calls and judge.schema_mode == "tool":
        return "\n".join(json.dumps(call.get("args"), ensure_ascii=False) for call in calls)
    return "".join(storable_text(get_path(part, "text")) for part in parts if not get_path(part, "thought"))


def decision_body(request: ModelRequest) -> dict[str, Any]:
    """Return the body of a question to the Decisions endpoint: which level of the judge's scale?"""
    levels = list(render.grade_levels(request.judge.grades))
    question = {"type": "score", "instructions": request.prompt.system, "criteria": levels}
    name = request.judge.model
    model = name if name.startswith("models/") else f"models/{name}"
    return {"model": model, "input": request.prompt.user, "questions": {"relevance": question}}


def read_decision(body: dict[str, Any], grades: int) -> Reply | None:
    """Return the levels' probabilities, and the likeliest level as the verdict; a blocked input is a refusal."""
    counts, answer = body.get("usage"), get_path(body, "answers", "relevance")
    needed_counts = ["total_input_tokens", *(["total_output_tokens"] if answer is not None else [])]
    usage = count_tokens(counts, DECISION_USED, needed_counts)
    if answer is None and isinstance(body.get("prompt_feedback"), dict):
        return Reply("", finish_reason="refusal", usage=usage)
    probabilities = get_path(answer, "probabilities")
    grade_probabilities = (
        {int(key): value for key, value in probabilities.items() if key.isdecimal()}
        if isinstance(probabilities, dict)
        else {}
    )
    verdict = likeliest_grade(grade_probabilities, grades)
    return verdict and Reply(verdict[0], finish_reason="stop", usage=usage, probabilities=verdict[1])
