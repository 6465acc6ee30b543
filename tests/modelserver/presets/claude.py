"""Look-alikes of Anthropic's messages: at Anthropic and at Amazon Bedrock; Vertex AI's share their rules."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from tests.modelserver.formats import MOST_BREAKPOINTS
from tests.modelserver.presets.asking import Asked
from tests.modelserver.presets.base import LookAlike, Refusal, when, words
from tests.modelserver.presets.writing import Counts

ACCESS_KEY, SECRET_KEY, REGION = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "us-east-1"
"""What a judge of Bedrock signs with in tests, and where it is asked."""
NO_SAMPLING = "2026-10-21"
"""The version of the messages API that takes no temperature, top_p and top_k."""
NEWER = re.compile(r"claude-[a-z]+-(4-[789]|[5-9])\b")  # Models from Claude 4.7 on.
OLDER = re.compile(r"claude-(2|3|instant)|claude-[a-z]+-4(?!-[6-9]\b)")
"""Models up to Claude 4.5, which know no adaptive thinking."""
ALWAYS = re.compile(r"claude-(fable|mythos|opus-5-5)")
"""Models that think, whatever a request says."""
UNASKED = re.compile(r"claude-(opus|sonnet|haiku)-[5-9]")
"""Models that think where a request does not say."""
PLACE = re.compile(r"[a-z]+(-[a-z]+)+-?\d+")  # Regions as AWS and Google Cloud name them.
AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/([^/]+)/aws4_request, SignedHeaders=(\S+), Signature=(\w+)"
)

MESSAGES_FIELDS = words(
    """model messages max_tokens system metadata stop_sequences stream temperature thinking tool_choice tools top_k
    top_p service_tier container inference_geo output_config.format output_config.effort cache_control"""
)
KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


def anthropic_error(refusal: Refusal) -> dict[str, Any]:
    kind = refusal.kind or KINDS.get(refusal.status, "api_error")
    return {"type": "error", "error": {"type": kind, "message": refusal.message}}


def messages_rules(asked: Asked) -> Refusal | None:
    """What the messages API refuses wherever it is."""
    body = asked.body
    thinking = body.get("thinking") or {}
    thinks = may_think(asked)
    most, budget = body.get("max_tokens"), thinking.get("budget_tokens")
    blocks = [block for message in body["messages"] for block in _blocks(message["content"])]
    marked = sum("cache_control" in block for block in [*blocks, *_blocks(body.get("system") or "")])
    forced = (body.get("tool_choice") or {}).get("type") in ("any", "tool")
    problem = ""
    if most is None:
        problem = "max_tokens: Field required"
    elif thinking.get("type") == "enabled" and (budget is None or budget < 1024):
        problem = "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024"
    elif thinking.get("type") in ("enabled", "disabled") and ALWAYS.search(asked.model):
        problem = f"thinking.type: '{thinking['type']}' is not supported with this model."
    elif thinking.get("type") == "adaptive" and OLDER.search(asked.model):
        problem = "adaptive thinking is not supported on this model"
    elif thinking.get("type") == "enabled" and NEWER.search(asked.model):
        problem = "thinking.type: 'enabled' is not supported with this model. Use 'adaptive'."
    elif thinking.get("type") == "enabled" and budget >= most:
        problem = "`max_tokens` must be greater than `thinking.budget_tokens`."
    elif NO_SAMPLING in (body.get("anthropic_version"), asked.headers.get("anthropic-version")) and (
        sampled := body.keys() & {"temperature", "top_p", "top_k"}
    ):
        problem = f"{min(sampled)}: Extra inputs are not permitted"
    elif thinks and body.get("temperature", 1) != 1:
        problem = "`temperature` may only be set to 1 when thinking is enabled."
    elif forced and (thinks or re.search(r"claude-(opus|sonnet)-5-5", asked.model)):
        problem = "Thinking may not be enabled when tool_choice forces tool use."
    elif marked > MOST_BREAKPOINTS:
        problem = "A maximum of 4 blocks with cache_control may be provided."
    elif any(not block["text"] for block in blocks):
        problem = "messages: text content blocks must be non-empty"
    elif asked.mode == "json_schema" and re.search(r"claude-(3|2|instant)", asked.model):
        problem = "output_config.format: this model does not support structured outputs"
    elif asked.mode == "json_schema" and asked.schema.get("additionalProperties") is not False:
        problem = (
            "output_config.format.schema: For 'object' type, 'additionalProperties' must be explicitly set to false"
        )
    return Refusal(400, problem) if problem else None


def _blocks(content: Any) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) and content else list(content)


def may_think(asked: Asked) -> bool:
    """Claude thinks where the request says so; newer models also where it says nothing, and some always."""
    kind = (asked.body.get("thinking") or {}).get("type")
    unasked = kind is None and UNASKED.search(asked.model)
    return bool(kind in ("enabled", "adaptive") or unasked or ALWAYS.search(asked.model))


def thinking_budget(asked: Asked) -> int | None:
    budget = asked.at("thinking.budget_tokens")
    return budget if isinstance(budget, int) else None


def shown_thoughts(body: dict[str, Any], asked: Asked, counts: Counts, told: bool = False) -> dict[str, Any]:
    """From Claude 4.7 on the text of thoughts is left out unless the request wants it summarized.

    `told`: the usage says how many of the output tokens were thoughts, as Anthropic's own does.
    """
    if told:
        body["usage"]["output_tokens_details"] = {"thinking_tokens": counts.reasoning}
    if NEWER.search(asked.model) and asked.at("thinking.display") != "summarized":
        for block in body["content"]:
            if block["type"] == "thinking":
                block["thinking"] = ""
    return body


CLAUDE: dict[str, Any] = {
    "wire": "messages",
    "home": "",
    "modes": frozenset({"json_schema", "tool", "text"}),
    "alternatives": 0,
    "thinks": may_think,
    "budget": thinking_budget,
    "context": 200_000,
    "unknown_field": Refusal(400, "{name}: Extra inputs are not permitted"),
    "too_long": Refusal(400, "prompt is too long: {tokens} tokens > {most} maximum"),
    "error": anthropic_error,
    "finish": shown_thoughts,
}
ANTHROPIC = LookAlike(
    name="anthropic",
    **(CLAUDE | {"finish": lambda body, asked, counts: shown_thoughts(body, asked, counts, told=True)}),
    key="x-api-key",
    fields=MESSAGES_FIELDS,
    rules=(
        when(lambda asked: not asked.headers.get("anthropic-version"), "anthropic-version: header is required"),
        messages_rules,
    ),
    missing_key=Refusal(401, "x-api-key header is required"),
    no_model=Refusal(404, "model: {model}"),
    batches=True,
)


@dataclass(frozen=True, kw_only=True)
class Bedrock(LookAlike):
    """The runtime of Amazon Bedrock: signed requests, checked with the library that made AWS's own clients."""

    def given_key(self, headers: dict[str, str]) -> str:
        """A Bedrock API key, or the access key that signed."""
        return headers.get("authorization", "").removeprefix("Bearer ")

    def refusal(self, asked: Asked) -> Refusal | None:
        """The signature comes first."""
        given = asked.headers.get("authorization", "")
        if given and not given.startswith("Bearer ") and (problem := signature_problem(f"/{self.name}", asked)):
            return Refusal(403, problem)
        return super().refusal(asked)


def signature_problem(prefix: str, asked: Asked) -> str:
    """Why a signature does not hold; "" where it does (Signature Version 4, worked out anew from what arrived)."""
    found = AUTHORIZATION.fullmatch(asked.headers["authorization"])
    if found is None:
        return "The request signature does not conform to AWS standards."
    key, day, region, service, signed, signature = found.groups()
    stamp = asked.headers.get("x-amz-date", "")
    if key != ACCESS_KEY:
        return "The security token included in the request is invalid."
    if not PLACE.fullmatch(region) or service != "bedrock" or not stamp.startswith(day):
        return f"Credential should be scoped to a valid region, not '{region}'."
    sent = datetime.strptime(stamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    if abs((datetime.now(UTC) - sent).total_seconds()) > 300:
        return f"Signature expired: {stamp}"
    missing = {"host", "x-amz-date"} - set(signed.split(";"))
    if missing:
        return f"'{min(missing)}' must be a signed header."
    headers = {name: asked.headers.get(name, "") for name in signed.split(";")}
    request = AWSRequest("POST", f"http://{asked.headers['host']}{prefix}{asked.path}", headers=headers, data=asked.raw)
    request.context["timestamp"] = stamp
    signer = SigV4Auth(Credentials(ACCESS_KEY, SECRET_KEY), "bedrock", region)
    wanted = signer.signature(signer.string_to_sign(request, signer.canonical_request(request)), request)
    if wanted == signature:
        return ""
    return (
        "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access "
        f"Key and signing method. The Canonical String for this request should have been "
        f"'{signer.canonical_request(request)}'"
    )


def bedrock_version(asked: Asked) -> Refusal | None:
    """The body names a version of the API; the newest one is for Claude 4.7 and later."""
    version = asked.body.get("anthropic_version")
    if version == "bedrock-2023-05-31" or (version == NO_SAMPLING and NEWER.search(asked.model)):
        return None
    return Refusal(400, f"Invalid API version: {version}")


PLATFORM_FIELDS = MESSAGES_FIELDS - words("model service_tier container inference_geo") | words(
    "anthropic_version anthropic_beta"
)
BEDROCK_CLAUDE = Bedrock(
    name="bedrock",
    **(CLAUDE | {"error": lambda refusal: {"message": refusal.message}}),
    path=r"/model/(?P<model>[^/]+)/invoke",
    fields=PLATFORM_FIELDS,
    rules=(bedrock_version, messages_rules),
    missing_key=Refusal(403, "Missing Authentication Token"),
    no_model=Refusal(400, "The provided model identifier is invalid."),
    judge={"region": REGION, "api_key_env": ""},
    environment={"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY},
)
