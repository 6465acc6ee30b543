"""Behaviours of providers and of what stands before them, each played to the whole engine but its database.

A row says what a judge's server sends, and what comes of it: the outcome of the vote, the calls
that were sent, USD that are booked, what becomes of the pair, and what pauses the campaign. Each
row is met by one document of three, beside a judge that is well; rows of `every` also by all of
thirty documents.

Rates stand in tests/judges/engine/test_rates.py, connections (TLS, proxies, names) in
test_network.py, batches in tests/judges/batch, what SDKs make of faults in test_providers.py.
"""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from google.genai import types

from judges.costs.prices import Price
from judges.domain import refusals
from judges.providers import close_providers, load_provider
from judges.records import Judge
from tests.engine_in_memory import PATIENCE_S, Played, inputs_of, play
from tests.modelserver.fixtures import KEY, KEY_ENV, LocalModels
from tests.stages import first_quick, first_slow

YES = '{"response": "yes", "reason": "It does."}'
FENCED = f"```json\n{YES}\n```"
USD = 0.0028  # Of an answer: 1,000 tokens in at 2 USD a million, 100 out at 8.
OWN = {"input_price": 2.0, "output_price": 8.0}
CHAT = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}
MESSAGES = {"input_tokens": 1000, "output_tokens": 100}
GENERATE = {"promptTokenCount": 1000, "candidatesTokenCount": 100, "totalTokenCount": 1100}
AT_ONCE = 16  # Rows that are played together.
DOCUMENTS, EVERY = 3, 30
WAITS_S = 3.0  # How long a row is played of which an account asks to wait for longer.
NGINX = (
    "<html>\r\n<head><title>{0}</title></head>\r\n<body>\r\n<center><h1>{0}</h1></center>\r\n<hr><center>nginx</center>"
)
FIREWALL = (
    "<!DOCTYPE html><html><head><title>Attention Required! | Cloudflare</title><style>a {color: red}</style></head>"
    "<body><h1>Sorry, you have been blocked</h1>" + "<p>Ray ID: 8f2</p>" * 200 + "</body></html>"
)
LONG = " ".join(f"The mapping number {n} of this book maps hashable values to objects of any kind." for n in range(260))


@dataclass(frozen=True)
class Row:
    """One behaviour. `sends`: entries of the server's script, for the one document or for all."""

    name: str
    sends: list[dict[str, Any]]
    vote: str = "labelled"
    calls: int = 1
    usd: float | None = 0.0  # None: nobody knows.
    pair: str = "labelled"  # "": it waits, as the campaign pauses.
    says: str = ""  # A part of the last error, or of the reason of the pause.
    every: str | None = None  # What pauses the campaign where all documents meet it; "": nothing does.
    preset: str = "openai-compatible"
    document: str = ""
    judge: dict[str, Any] = field(default_factory=dict)
    waits: bool = False  # The account asks to wait for longer than the test has time: no call is counted.
    tables: dict[str, Price] = field(default_factory=dict)


def said(message: str, **fields: Any) -> dict[str, Any]:
    return {"error": {"message": message, **fields}}


def sent(status: int, body: Any, **more: Any) -> dict[str, Any]:
    return {"status": status, "body": body if isinstance(body, str) else json.dumps(body), **more}


def chat(text: Any = YES, finish: object = "stop", usage: Any = CHAT, **message: Any) -> dict[str, Any]:
    return {
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": text, **message}, "finish_reason": finish}
        ],
        "usage": usage,
    }


def messages(text: str = YES, stop: object = "end_turn", usage: Any = MESSAGES) -> dict[str, Any]:
    content = [{"type": "text", "text": text}] if text else []
    return {"type": "message", "content": content, "stop_reason": stop, "usage": usage}


def generate(text: str = YES, finish: object = "STOP", usage: Any = GENERATE) -> dict[str, Any]:
    parts = [{"text": text}] if text else []
    return {"candidates": [{"content": {"parts": parts}, "finishReason": finish}], "usageMetadata": usage}


def response(text: str = YES, status: str = "completed", **more: Any) -> dict[str, Any]:
    output = [{"type": "message", "content": [{"type": "output_text", "text": text}]}]
    return {"status": status, "output": output, "usage": MESSAGES, **more}


def stream(text: str) -> str:
    pieces: list[dict[str, Any]] = [{"content": text[: len(text) // 2]}, {"content": text[len(text) // 2 :]}]
    parts: list[dict[str, Any]] = [{"choices": [{"delta": piece}]} for piece in pieces]
    parts += [{"choices": [{"delta": {}, "finish_reason": "stop"}]}, {"choices": [], "usage": CHAT}]
    return "".join(f"data: {json.dumps(part, ensure_ascii=False)}\n\n" for part in parts) + "data: [DONE]\n\n"


# --- kinds of rows ----------------------------------------------------------------------------------------------------
def told(body: dict[str, Any]) -> str:
    """The message in an error's body."""
    error = body.get("error") or body.get("message") or body["detail"]
    return error if isinstance(error, str) else error["message"]


def of_text(name: str, status: int, body: Any, says: str = "", **more: Any) -> Row:
    """Refused for what was sent: the others decide, nothing is sent again. `says`: where it is not its message."""
    return Row(name, [sent(status, body)], "refused", says=says or told(body), **more)


def of_account(name: str, status: int, body: Any, says: str = "", **more: Any) -> Row:
    """Refused whatever is asked, and it says so: the first one pauses."""
    says = says or told(body)
    return Row(name, [sent(status, body)], "", pair="", says=says, every=says, **more)


def of_nobody(name: str, status: int, body: Any, every: str, **more: Any) -> Row:
    """Refused, and it does not say for what: of the text, unless all are refused alike."""
    return Row(name, [sent(status, body)], "refused", every=every, **more)


def of_moment(name: str, sends: dict[str, Any], usd: float | None = USD, **more: Any) -> Row:
    """It passes: asked once more, and answered."""
    return Row(name, [{**sends, "times": 1}], calls=2, usd=usd, **more)


def for_good(name: str, sends: dict[str, Any], usd: float | None = 0.0, **more: Any) -> Row:
    """The same whenever this document is sent: four tries, the pair fails, and the account goes on."""
    return Row(name, [sends], "error", 4, usd, "failed", **more)


def ends(name: str, body: Any, vote: str = "labelled", calls: int = 1, usd: float | None = USD, **more: Any) -> Row:
    """An answer. Of two calls both are paid."""
    return Row(name, [sent(200, body)], vote, calls, usd, **more)


def of_quota(span: str) -> dict[str, Any]:
    """Google's refusal: the wait that it names is the minute's, also where the day's quota is used up."""
    failure = {"violations": [{"quotaId": f"GenerateRequestsPer{span}PerProjectPerModel-FreeTier"}]}
    return said(
        "You exceeded your current quota.", status="RESOURCE_EXHAUSTED", details=[failure, {"retryDelay": "0.01s"}]
    )


# --- the table --------------------------------------------------------------------------------------------------------
XAI = {
    "code": "The caller does not have permission to execute the specified operation",
    "error": "Content violates usage guidelines. Team: 1, Failed check: SAFETY_CHECK_TYPE_BIO",
}
VIOLENT = {"content_filter_result": {"violence": {"filtered": True, "severity": "medium"}}}
AZURE = said(
    "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
    **{"code": "content_filter", "status": 400},
    innererror={"code": "ResponsibleAIPolicyViolation", **VIOLENT},
)
BEHIND = {"raw": '{"error": {"code": "content_filter", "message": "filtered"}}', "provider_name": "Azure"}
FLAGGED = said("Input flagged", code=403, metadata={"reasons": ["violence"], "flagged_input": "how to ..."})
FIREWALLED = "HTML in place of an answer: Attention Required!"
TOO_LARGE = NGINX.format("413 Request Entity Too Large")
ANOTHER = "take another judge"
UNKNOWN_FIELD = {"detail": [{"loc": ["body"], "msg": "extra fields"}]}
NO_ZERO = said("Unsupported value: 'temperature' does not support 0.")
NO_SYSTEM = said("System role not supported", type="BadRequestError")
OLD_API = said("response_format is enabled only for api versions 2024-08-01")

OF_TEXT = [
    of_text("xai: safety check", 403, XAI, every=ANOTHER),
    of_text("openrouter: flagged", 403, FLAGGED),
    of_text("openrouter: reasons alone", 403, said("Forbidden", metadata={"reasons": ["self-harm"]})),
    of_text("openrouter: flagged input alone", 403, said("Blocked", metadata={"flagged_input": "x"})),
    of_text("openrouter: a filter behind a 502", 502, said("Provider returned error", metadata=BEHIND), "filtered"),
    of_text("openrouter: a filter under 200", 200, said("Provider returned error", code="content_filter")),
    of_text("openai: policy as 403", 403, said("Your request was refused", code="content_policy_violation")),
    of_text("openai: policy as 400", 400, said("Your request was rejected", code="content_policy_violation")),
    of_text("openai: invalid prompt", 400, said("Invalid prompt: it was flagged", code="invalid_prompt")),
    of_text("openai: a safety identifier", 400, said("This request was blocked for safety reasons.")),
    of_text("azure: filter", 400, AZURE, every=ANOTHER),
    of_text("deepseek: risk", 400, said("Content Exists Risk", type="invalid_request_error")),
    of_text("qwen: inspection", 400, said("Input data may be inappropriate.", code="data_inspection_failed")),
    of_text("dashscope: inspection", 400, {"code": "DataInspectionFailed", "message": "Not accepted."}),
    of_text("anthropic: output", 400, said("Output blocked by content filtering policy")),
    of_text("moonshot: high risk", 400, said("The request was rejected: it was considered high risk")),
    of_text("zhipu: sensitive", 400, said("系统检测到输入内容可能包含不安全或敏感内容", code="1301")),
    of_text("sensitive words", 400, said("The prompt contains sensitive words that violate our rules")),
    of_text("mistral: guardrail", 403, {"object": "error", "message": "Refused", "type": "guardrail_violation"}),
    of_text("bedrock: guardrail", 400, {"message": "Guardrail intervened: the input was blocked"}),
    of_text("litellm: guardrail", 400, said("Violated guardrail policy", type="None", code="400")),
    of_text("litellm: policy", 400, said("litellm.ContentPolicyViolationError: AzureException")),
    of_text("google, as a 400", 400, said("The prompt was blocked: PROHIBITED_CONTENT", code=400)),
    of_text("451", 451, said("Flagged by moderation")),
    of_text("422 of a filter", 422, said("prohibited_content")),
    of_text("a firewall before the server", 403, FIREWALL, FIREWALLED, every="HTML"),
    of_text("413", 413, said("Request too large")),
    of_text("413 of nginx", 413, TOO_LARGE, "Entity Too Large", every="context length"),
    of_text("openai: length", 400, said("maximum context length is 8192 tokens", code="context_length_exceeded")),
    of_text("anthropic: length", 400, said("prompt is too long: 213000 tokens > 200000 maximum")),
    of_text("google: length", 400, said("The input token count (9) exceeds the maximum number of tokens (8)")),
    of_text("bedrock: length", 400, {"message": "Input is too long for requested model."}),
    of_text("mistral: length", 400, {"message": "Prompt contains 9 tokens, too large for model"}),
    of_text("vllm: length", 400, said("The decoder prompt (length 9) is longer than the maximum model length of 8")),
    of_text("tgi: length", 422, {"error": "`inputs` tokens + `max_new_tokens` must be <= 8", "error_type": "v"}),
    of_text("sglang: length", 400, {"message": "The input (9 tokens) is longer than the model's context length"}),
    of_text("llama.cpp: length", 400, said("the request exceeds the available context size", code=400)),
    of_text("llama.cpp: length, as a 500", 500, said("Context size has been exceeded.", code=500)),
    of_text("lm studio: length", 400, {"error": "Trying to keep 9 tokens with context length of 8"}),
    of_text("ollama: length", 400, said("prompt too long; exceeded max context length by 4 tokens")),
    of_text("groq: more than a minute's tokens", 429, said("Request too large for model m on TPM: Limit 8")),
    # Without a word about it: of the text, as long as others are answered.
    of_nobody("a 403 that says nothing", 403, said("scripted 403"), "403 scripted"),
    of_nobody("403 of a policy at openrouter", 403, said("No allowed providers are available"), "No allowed providers"),
    of_nobody("a field that it does not know", 422, UNKNOWN_FIELD, "check_judges"),
    of_nobody("openai: temperature", 400, said("Unsupported value: 'temperature' does not support 0."), '= "default"'),
    of_nobody("vllm: no system role", 400, NO_SYSTEM, 'system = "user"'),
    of_nobody("azure: api version", 400, OLD_API, "api_version"),
    of_nobody("openrouter: key limit", 403, said("Key limit exceeded (total limit)", code=403), "Key limit exceeded"),
    of_nobody("a moved server", 308, " ", "308 redirects are not followed"),
    of_nobody("405 of nginx", 405, NGINX.format("405 Not Allowed"), "405"),
]
OF_ACCOUNT = [
    of_account("openai: key", 401, said("Incorrect API key provided", code="invalid_api_key")),
    of_account("mistral: key", 401, {"detail": "Unauthorized"}),
    of_account("anthropic: key", 401, said("invalid x-api-key", type="authentication_error"), preset="anthropic"),
    of_account(
        "google: key",
        400,
        said("API key not valid.", code=400, details=[{"reason": "API_KEY_INVALID"}]),
        preset="google",
    ),
    of_account("google: leaked key", 403, said("Your API key was reported as leaked.", status="PERMISSION_DENIED")),
    of_account("xai: key", 400, {"code": "Client specified", "error": "Incorrect API key provided: xa***"}),
    of_account("deepseek: balance", 402, said("Insufficient Balance")),
    of_account("openai: model", 404, said("The model x does not exist", code="model_not_found")),
    of_account("a page that is not there", 404, NGINX.format("404 Not Found"), "404 Not Found"),
    of_account("a model that is gone", 410, said("The model x is no longer supported")),
    of_account("groq: decommissioned", 400, said("The model x has been decommissioned", code="model_decommissioned")),
    of_account("groq: restricted", 400, said("Organization has been restricted", code="organization_restricted")),
    of_account("fireworks: suspended", 412, said("Account suspended"), preset="fireworks"),
    of_account("anthropic: limit", 400, said("You have reached your specified API usage limits."), "raise the limit"),
    of_account("anthropic: credit", 400, said("Your credit balance is too low to access the API")),
    of_account("anthropic: permission", 403, said("Your key lacks a right", type="permission_error")),
    of_account("anthropic: disabled", 400, said("This organization has been disabled.")),
    of_account(
        "google: place", 400, said("User location is not supported.", status="FAILED_PRECONDITION"), "does not serve"
    ),
    of_account("google: billing", 400, said("Precondition check failed.", status="FAILED_PRECONDITION")),
    of_account("google: prepaid", 429, said("Your prepayment credits are depleted.", status="RESOURCE_EXHAUSTED")),
    of_account(
        "google: no such model in its tier",
        429,
        said("Quota exceeded for metric: free_tier_requests, limit: 0, model: m", status="RESOURCE_EXHAUSTED"),
    ),
    of_account("google: cap", 429, said("Your project has exceeded its monthly spending cap."), "raise the limit"),
    of_account(
        "google: limited", 200, generate("", "PUP_LIMITED_DISABLED"), "limited this account", preset="google", usd=USD
    ),
    of_account("openai: country", 403, said("Country not supported", code="unsupported_country_region_territory")),
    of_account("openai: quota", 429, said("You exceeded your current quota", code="insufficient_quota")),
    of_account("openai: hard limit", 400, said("Billing hard limit reached", code="billing_hard_limit_reached")),
    of_account("xai: credits", 429, {"error": "Your team has either used all available credits or reached its limit"}),
    of_account("zhipu: balance", 429, said("Insufficient balance. Please recharge.", code="1113")),
    of_account("moonshot: balance", 429, said("suspended", type="exceeded_current_quota_error")),
    of_account("qwen: arrears", 400, said("Access denied", code="Arrearage")),
    of_account("qwen: free tier", 403, said("The free tier is exhausted", code="AllocationQuota.FreeTierOnly")),
    of_account("litellm: budget", 400, said("Budget has been exceeded!", type="budget_exceeded"), "raise the limit"),
    of_account("litellm: no such route", 400, said("Invalid model name passed in model=x")),
    of_account(
        "bedrock: profile", 400, {"message": "Model x with on-demand throughput isn't supported."}, "inference profile"
    ),
    of_account(
        "bedrock: profile, curly", 400, {"message": "with on-demand throughput isn\u2019t supported."}, "inference"
    ),
    of_account("bedrock: rights", 403, {"message": "User is not authorized to perform: bedrock:InvokeModel"}),
    of_account("azure: network", 403, said("Access denied due to Virtual Network/Firewall rules.", code="403")),
    of_account("bedrock: signature", 403, {"message": "The request signature we calculated does not match"}),
    of_account("lm studio: another address", 200, {"error": "Unexpected endpoint or method. (POST /chat/completions)"}),
    of_account("vllm: no such endpoint", 501, said("Not Implemented")),
    of_account("a proxy that asks who", 407, NGINX.format("407 Proxy Authentication Required"), "Proxy Authentication"),
]
GATEWAY = NGINX.format("502 Bad Gateway")
OF_MOMENT = [
    *(
        of_moment(f"{status}", {"status": status, "body": "{}"})
        for status in (408, 409, 424, 425, 498, 499, 500, 503, 529)
    ),
    of_moment("502 of nginx", sent(502, GATEWAY)),
    *(of_moment(f"cloudflare {status}", sent(status, f"error code: {status}")) for status in (520, 522, 524, 530)),
    of_moment("anthropic: overloaded", sent(529, said("Overloaded", type="overloaded_error")), preset="anthropic"),
    of_moment("google: overloaded", sent(503, said("The model is overloaded.", code=503)), preset="google"),
    of_moment("bedrock: throttled", sent(429, {"message": "Too many requests"})),
    of_moment("bedrock: the model failed", sent(424, {"message": "an error while processing"})),
    of_moment("groq: flex without room", sent(498, said("Flex tier capacity exceeded"))),
    of_moment("groq: no JSON", sent(400, said("Failed to generate JSON", code="json_validate_failed")), None),
    of_moment("groq: no tool", sent(400, said("Failed to call a function", code="tool_use_failed")), None),
    of_moment("lm studio: crashed", sent(400, {"error": "The model has crashed without additional information."})),
    of_moment("lm studio: unloaded", sent(400, {"error": "Model unloaded."})),
    of_moment("ollama: crashed", sent(500, said("model runner has unexpectedly stopped"))),
    of_moment("llama.cpp: loading", sent(503, said("Loading model", code=503))),
    of_moment("openrouter: 502 under 200", sent(200, said("Provider returned error", code=502))),
    of_moment("openrouter: 429 under 200", sent(200, said("Rate limited upstream", code=429))),
    of_moment("an error under 200", sent(200, said("something went wrong")), None),
    of_moment("google: the minute's quota", sent(429, of_quota("Minute"))),
    Row(
        "google: the day's quota",
        [sent(429, of_quota("Day"))],
        "",
        0,
        pair="",
        says="of the day is used up",
        waits=True,
    ),
    of_moment("429", sent(429, said("slow down"))),
    of_moment("mistral: capacity", sent(429, {"message": "Service tier capacity exceeded", "code": "3505"})),
    of_moment("cut off", {"fault": "drop"}, None),
    of_moment("half a body", {"fault": "half"}, None),
    of_moment("nothing in time", {"fault": "hang"}, None, judge={"timeout_s": 1.0}),
    of_moment("no body", {"fault": "no-body"}, None),
    of_moment("204", {"status": 204, "body": " "}, None),
    of_moment("HTML under 200", sent(200, "<html><title>Welcome</title></html>"), None),
    of_moment("another format", sent(200, {"detail": "ok"}), None),
    of_moment("a list", sent(200, "[]"), None),
    of_moment("10 MB", {"fault": "huge"}, None),
    of_moment("broken by the server", sent(200, chat(finish="error")), 2 * USD),
    of_moment("an error within the choice", sent(200, chat(finish=None) | {"error": said("crash")["error"]}), 2 * USD),
    for_good("500 for one document", {"status": 500, "body": "{}"}),
    for_good("the connection is cut for one document", {"fault": "drop"}, None),
    for_good("a crash for one document", sent(400, {"error": "The model has crashed without additional information."})),
    for_good("an error under 200 for one document", sent(200, said("no")), None, every="none usable"),
    for_good("an error with what was used", sent(500, {**said("crash"), "usage": CHAT}), 4 * USD),
]
GOOGLE = {"STOP": "labelled", "MAX_TOKENS": "truncated"}
GOOGLE |= dict.fromkeys(["SAFETY", "RECITATION", "ESCALATION", "MODEL_ARMOR", "PROHIBITED_CONTENT", "SPII"], "refused")
GOOGLE |= dict.fromkeys(["BLOCKLIST", "LANGUAGE", "IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT"], "refused")
GOOGLE |= dict.fromkeys(["IMAGE_RECITATION", "IMAGE_OTHER"], "refused")
CHOICE_ERROR = {"error": {"code": 502, "message": "the model crashed"}, "message": {"content": "{"}}
ANSWERS = [
    ends("a good answer", chat()),
    # Ends that are known to be good, and the others.
    *(
        ends(f"{finish}", chat(finish=finish))
        for finish in ("tool_calls", "function_call", "eos", "eos_token", "stop_sequence", "end_turn", None)
    ),
    *(
        ends(f"{finish}", chat(finish=finish), "refused")
        for finish in (
            "content_filter",
            "content_filter: SAFETY",
            "sensitive",
            "guardrail_intervened",
            "content_filtered",
        )
    ),
    *(ends(f"{finish}", chat(finish=finish), "truncated") for finish in ("length", "max_tokens", "model_length")),
    *(ends(f"{finish}", chat(finish=finish), "unparsed") for finish in ("load", "repetition", "new", "pause_turn")),
    for_good("abort", sent(200, chat(finish="abort")), 4 * USD),
    for_good("insufficient_system_resource", sent(200, chat(finish="insufficient_system_resource")), 4 * USD),
    # Azure filters what the model writes.
    ends("azure: filtered output", chat("", "content_filter"), "refused", preset="azure", every="take another judge"),
    ends("openai: it declines", chat(None, refusal="I cannot help with this."), "refused"),
    ends("anthropic: refusal", messages("", "refusal"), "refused", preset="anthropic"),
    ends(
        "anthropic: max_tokens", messages(YES[:20], "max_tokens"), "truncated", preset="anthropic", every="max_output"
    ),
    ends("anthropic: window", messages(YES[:20], "model_context_window_exceeded"), "truncated", preset="anthropic"),
    ends("anthropic: pause_turn", messages(stop="pause_turn"), "unparsed", preset="anthropic"),
    ends("anthropic: a new end", messages(stop="new"), "unparsed", preset="anthropic"),
    ends("responses: good", response(), preset="openai-responses"),
    *(
        ends(f"responses: {state}", response(status=state), "unparsed", preset="openai-responses")
        for state in ("cancelled", "in_progress", "queued")
    ),
    for_good(
        "responses: failed",
        sent(200, response("", "failed", error={"code": "server_error", "message": "Sorry"})),
        4 * USD,
        preset="openai-responses",
    ),
    ends(
        "responses: filtered",
        response("", "incomplete", incomplete_details={"reason": "content_filter"}),
        "refused",
        preset="openai-responses",
    ),
    ends(
        "google: the prompt is blocked",
        {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 1000}},
        "refused",
        usd=0.002,
        preset="google",
    ),
    *(
        ends(f"google: {finish}", generate(finish=finish), GOOGLE.get(finish, "unparsed"), preset="google")
        for finish in sorted(
            {*types.FinishReason.__members__, *GOOGLE, "CONTINUATION", "NEW"} - {"PUP_LIMITED_DISABLED"}
        )
    ),
    # What is no verdict is asked for once more, and paid twice.
    ends("a fence", chat(FENCED), "unparsed", 2, 2 * USD, every="check_judges"),
    ends("a fence that may be there", chat(FENCED), judge={"unwrap": "fence"}),
    ends("words around it", chat(f"Here it is: {YES}"), "unparsed", 2, 2 * USD),
    ends("words alone", chat("It depends."), "unparsed", 2, 2 * USD),
    ends("no text", chat(""), "unparsed", 2, 2 * USD),
    ends("no text at all", chat(None), "unparsed", 2, 2 * USD),
    ends("in the thoughts alone", chat("", reasoning_content=YES), "unparsed", 2, 2 * USD),
    ends("another schema", chat('{"relevance": 1}'), "unparsed", 2, 2 * USD),
    ends("neither yes nor no", chat('{"response": "maybe", "reason": "r"}'), "out_of_range", 2, 2 * USD),
    ends("a key too many", chat('{"response": "yes", "reason": "r", "score": 1}'), "unparsed", 2, 2 * USD),
    ends("twice", chat(YES + YES), "unparsed", 2, 2 * USD),
    ends("no choice", {"choices": [], "usage": CHAT}, "unparsed", 2, 2 * USD),
    Row("a repair that is right", [sent(200, chat(FENCED), times=1)], calls=2, usd=2 * USD),
    ends("parts of a text", chat([{"type": "text", "text": YES}])),
    ends("a mark before it", "\ufeff" + json.dumps(chat())),
    # Streams that nobody asked for.
    ends("a stream", stream(YES)),
    for_good("a stream with an error", sent(200, 'data: {"error": {"message": "x", "code": 503}}\n\n')),
    ends("a stream of qwen with U+2028", stream(YES.replace("It ", "It\u2028")), preset="qwen"),
]
CUT = "set its context length"
WRONG = [
    ends(
        "ollama: the prompt is cut",
        chat(usage=CHAT | {"prompt_tokens": 2050}),
        "prompt_cut",
        usd=0.0049,
        says=CUT,
        document=LONG,
    ),
    ends("another model", chat() | {"model": "other-model"}, usd=None),
    ends("another model with a price", chat() | {"model": "other"}, usd=0.0011, tables={"other": Price(1.0, 1.0, 1.0)}),
    ends("a file of one's own server", chat() | {"model": "/models/q4.gguf"}, preset="vllm"),
]
MONEY = [
    ends("openrouter: cost", chat(usage=CHAT | {"cost": 0.01}), usd=0.01, preset="openrouter"),
    ends("openrouter: for nothing", chat(usage=CHAT | {"cost": 0}), usd=0.0, preset="openrouter"),
    ends(
        "openrouter: a key of one's own",
        chat(usage=CHAT | {"cost": 0.001, "is_byok": True, "cost_details": {"upstream_inference_cost": 0.02}}),
        usd=0.021,
        preset="openrouter",
    ),
    ends("xai: ticks", chat(usage=CHAT | {"cost_in_usd_ticks": 37_756_000}), usd=0.0037756, preset="xai"),
    *(
        Row(
            f"litellm: a bill of {bill}",
            [sent(200, chat(), headers={"x-litellm-response-cost": bill})],
            usd=usd,
            preset="litellm",
        )
        # A gateway that cannot price a model says 0, or a word: the team's own price holds.
        for bill, usd in (("0.0123", 0.0123), ("0.0", USD), ("None", USD))
    ),
    ends("a cost of nobody", chat(usage=CHAT | {"cost": 0.01})),
    ends("thoughts in the total alone", chat(usage=CHAT | {"total_tokens": 2100}), usd=0.0108),
    ends("no usage", chat(usage=None), usd=None),
    ends("usage of nothing", chat(usage={}), usd=None),
    ends("another tier", chat() | {"service_tier": "priority"}, usd=None),
    ends("the usual tier", chat() | {"service_tier": "default"}),
    ends(
        "anthropic: in one country", messages(usage=MESSAGES | {"inference_geo": "us"}), usd=0.00308, preset="anthropic"
    ),
    ends("anthropic: fast", messages(usage=MESSAGES | {"speed": "fast"}), usd=None, preset="anthropic"),
    ends(
        "anthropic: from the cache",
        messages(usage=MESSAGES | {"cache_read_input_tokens": 1000}),
        usd=0.0048,
        preset="anthropic",
    ),
    ends("google: thoughts", generate(usage=GENERATE | {"thoughtsTokenCount": 100}), usd=0.0036, preset="google"),
    for_good("an error within the choice, for good", sent(200, {"choices": [CHOICE_ERROR], "usage": CHAT}), 4 * USD),
    ends("truncated by its thoughts", chat("", "length"), "truncated", every="max_output_tokens"),
]
ROWS = [*WRONG, *OF_TEXT, *OF_ACCOUNT, *OF_MOMENT, *ANSWERS, *MONEY]
QUICK = [row for kind in (WRONG, OF_TEXT, OF_ACCOUNT, OF_MOMENT, ANSWERS, MONEY) for row in kind[:4]]
OTHERS = [row for row in ROWS if row not in QUICK]
BY_ALL = [row for row in (*QUICK, *OTHERS) if row.every is not None]


# --- playing it -------------------------------------------------------------------------------------------------------
def judge_of(models: LocalModels, row: Row, place: int) -> Judge:
    """The judge that meets the behaviour: a model of its own, so that all rows fit into one script."""
    model, more = f"m{place}", {**OWN, **row.judge, "id": 2, "name": "odd"}
    if row.preset == "openai-compatible":
        return models.judge(model, **more)
    return models.alike(row.preset, model, **more)


def script_of(rows: list[Row], contains: str) -> dict[str, Any]:
    """What the server sends: the well judges and every other document get a good answer."""
    script: dict[str, Any] = {"*": {"verdict": "yes"}}
    good = {"anthropic": messages(), "openai-responses": response(), "google": generate()}
    for place, row in enumerate(rows):
        well = sent(200, good.get(row.preset) or chat())
        script[f"m{place}"] = [*({**one, "contains": contains} for one in row.sends), well]
    return script


def play_rows(models: LocalModels, rows: list[Row], folder: Path, *, every: bool) -> dict[str, Played]:
    """Play all rows, some at a time, as campaigns of their own."""
    models.reset()
    models.script(script_of(rows, "" if every else "mapping number 1 map"))
    room = asyncio.Semaphore(AT_ONCE)
    for preset in {row.preset for row in rows}:
        load_provider(preset)  # it takes seconds, in which no loop would turn

    async def one(row: Row, place: int) -> Played:
        odd, well = judge_of(models, row, place), models.judge("well", id=1)
        asked = [inputs_of(n, row.document if n == 1 else "") for n in range(1, 1 + (EVERY if every else DOCUMENTS))]
        async with room:
            voters = [odd] if every else [well, odd]
            first, patience = 0.0 if every else 0.05, WAITS_S if row.waits else PATIENCE_S
            return await play(voters, asked, folder, first_alone_s=first, tables=row.tables, patience_s=patience)

    async def main() -> list[Played]:
        try:
            return await asyncio.gather(*(one(row, place) for place, row in enumerate(rows)))
        finally:
            await close_providers()

    return dict(zip((row.name for row in rows), asyncio.run(main()), strict=True))


@pytest.fixture(scope="module")
def models(_model_server_process: LocalModels) -> Iterator[LocalModels]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(KEY_ENV, KEY)
        patch.setenv("QUORUM_LOOPBACK_ONLY", "1")
        patch.setattr(settings, "RETRY_SECONDS", 0.01)
        patch.setattr(refusals, "AFTER_S", 0.005)
        yield _model_server_process


def name_of(row: Row) -> str:
    return row.name


def asked_for(request: pytest.FixtureRequest, test: str) -> list[Row]:
    """The rows that this run asks for."""
    items = [item for item in request.session.items if isinstance(item, pytest.Function)]
    return [item.callspec.params["row"] for item in items if item.originalname == test]


@pytest.fixture(scope="module")
def by_one(models, tmp_path_factory, request):
    rows = asked_for(request, "test_what_one_document_meets")
    return play_rows(models, rows, tmp_path_factory.mktemp("one"), every=False)


@pytest.fixture(scope="module")
def by_all(models, tmp_path_factory, request):
    rows = asked_for(request, "test_what_all_documents_meet")
    return play_rows(models, rows, tmp_path_factory.mktemp("all"), every=True)


@pytest.mark.parametrize("row", first_quick([*QUICK, *OTHERS], len(QUICK)), ids=name_of)
def test_what_one_document_meets(by_one: dict[str, Played], row: Row) -> None:
    played = by_one[row.name]
    calls = played.rows_of("odd", 1)
    errors = [call["error"] for call in calls]
    assert played.votes.get((1, "odd"), "") == row.vote, (errors, played.pause)
    assert len(calls) == row.calls, errors
    assert played.cost("odd", 1) == (None if row.usd is None else pytest.approx(row.usd)), errors
    assert played.states.get(1, "") == row.pair
    assert row.says in (played.waits if row.waits else played.pause or errors[-1])
    if row.pair:
        assert not played.pause and set(played.states) == set(range(1, DOCUMENTS + 1)), "the others go on"
        others = [played.states[number] for number in range(2, DOCUMENTS + 1)]
        assert set(others) == {"labelled"} and len(played.rows_of("odd")) == row.calls + DOCUMENTS - 1
    assert all(len(error) < 400 and "<" not in error.replace("<=", "") for error in errors), "words, and no markup"


@pytest.mark.parametrize("row", first_slow(BY_ALL, 20), ids=name_of)
def test_what_all_documents_meet(by_all: dict[str, Played], row: Row) -> None:
    played = by_all[row.name]
    assert played.pause and row.every in played.pause, (played.pause, played.waits)
    assert played.pause.startswith("odd, account "), "it says whose"
    # Of answers that cannot be used some may be on their way when the twentieth arrives.
    most = 24 if "none usable" in played.pause else 20
    assert len(played.rows) <= 2 * most and len({call["pair"] for call in played.rows}) <= most
    assert "failed" not in played.states.values()
