"""Look-alikes of Google AI, and of Vertex AI with Google's models and with Anthropic's."""

import re
from typing import Any

from tests.modelserver.presets.asking import Asked
from tests.modelserver.presets.base import LookAlike, Refusal, when, words
from tests.modelserver.presets.claude import CLAUDE, PLATFORM_FIELDS, anthropic_error, messages_rules
from tests.modelserver.presets.claude import PLACE as REGIONS

REGION, PROJECT, TOKEN = "us-east1", "a-team", "ya29.test-token-0123456789"
"""Where Vertex is asked in tests, and as whom."""

GENERATE_FIELDS = words(
    """contents systemInstruction tools toolConfig safetySettings cachedContent serviceTier
    generationConfig.stopSequences generationConfig.responseMimeType generationConfig.responseSchema
    generationConfig.responseJsonSchema generationConfig.candidateCount generationConfig.maxOutputTokens
    generationConfig.temperature generationConfig.topP generationConfig.topK generationConfig.seed
    generationConfig.presencePenalty generationConfig.frequencyPenalty generationConfig.responseLogprobs
    generationConfig.logprobs generationConfig.thinkingConfig.includeThoughts
    generationConfig.thinkingConfig.thinkingBudget generationConfig.thinkingConfig.thinkingLevel
    generationConfig.mediaResolution"""
)
STATES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
}


def google_error(refusal: Refusal) -> dict[str, Any]:
    state = STATES.get(refusal.status, "INTERNAL")
    return {"error": {"code": refusal.status, "message": refusal.message, "status": state}}


NO_GEMINI = Refusal(404, "models/{model} is not found for API version v1beta.")


def generate_rules(asked: Asked) -> Refusal | None:
    """What generateContent refuses at Google AI and at Vertex."""
    config = asked.body.get("generationConfig") or {}
    thinking = config.get("thinkingConfig") or {}
    json_type = config.get("responseMimeType") == "application/json"
    if asked.schema and asked.mode == "json_schema" and not json_type:
        return Refusal(400, "response_mime_type must be application/json with a response schema")
    if asked.mode == "tool" and json_type:
        return Refusal(400, "Function calling with a response mime type: 'application/json' is unsupported")
    if thinking and re.match(r"gemini-(1|2\.0)", asked.model):
        return Refusal(400, "Thinking is not supported by this model.")
    if "thinkingBudget" in thinking and "thinkingLevel" in thinking:
        return Refusal(400, "You can only set only one of thinking budget and thinking level.")
    return None


def gemini_budget(asked: Asked) -> int | None:
    """-1 leaves it to the model."""
    budget = asked.at("generationConfig.thinkingConfig.thinkingBudget")
    return budget if isinstance(budget, int) and budget >= 0 else None


GEMINI: dict[str, Any] = {
    "wire": "generate",
    "home": "",
    "fields": GENERATE_FIELDS,
    "thinks": lambda asked: bool(asked.at("generationConfig.thinkingConfig.thinkingBudget") != 0),
    "budget": gemini_budget,
    "context": 1_048_576,
    "unknown_field": Refusal(400, 'Invalid JSON payload received. Unknown name "{name}": Cannot find field.'),
    "too_long": Refusal(400, "The input token count ({tokens}) exceeds the maximum number of tokens allowed ({most})."),
    "no_model": NO_GEMINI,
    "error": google_error,
}


GOOGLE = LookAlike(
    name="google",
    **GEMINI,
    key="x-goog-api-key",
    rules=(generate_rules,),
    missing_key=Refusal(
        403, "Method doesn't allow unregistered callers (callers without established identity). Please use API Key."
    ),
    batches=True,
)


def known_project(asked: Asked) -> Refusal | None:
    """A project that is not the caller's, or a place that is none."""
    if asked.parts["project"].startswith("no-such"):
        name = f"projects/{asked.parts['project']}"
        return Refusal(403, f"Permission 'aiplatform.endpoints.predict' denied on resource '{name}'.")
    if asked.parts["location"] not in ("global", "us", "eu") and not REGIONS.fullmatch(asked.parts["location"]):
        return Refusal(400, f"Invalid location: {asked.parts['location']}")
    return None


CLOUD: dict[str, Any] = {
    "judge": {"region": REGION, "project": PROJECT, "token_command": ["echo", TOKEN]},
    "missing_key": Refusal(
        401,
        "Request is missing required authentication credential. Expected OAuth 2 access token, login cookie or other "
        "valid authentication credential.",
    ),
}
PLACE = r"/v1/projects/(?P<project>[^/]+)/locations/(?P<location>[^/]+)/publishers/"
VERTEX_GEMINI = LookAlike(
    name="vertex",
    **GEMINI,
    **CLOUD,
    path=PLACE + r"google/models/(?P<model>[^/:]+):generateContent",
    rules=(known_project, generate_rules),
)


def partner_error(refusal: Refusal) -> dict[str, Any]:
    """What Anthropic refuses is written as Anthropic does, what Google refuses as Google does."""
    own = refusal.status in (401, 403, 404) or "Policy" in refusal.message
    return google_error(refusal) if own else anthropic_error(refusal)


VERTEX_ANTHROPIC = LookAlike(
    name="vertex-anthropic",
    **(CLAUDE | {"error": partner_error}),
    **CLOUD,
    path=PLACE + r"anthropic/models/(?P<model>[^/:]+):rawPredict",
    fields=PLATFORM_FIELDS,
    rules=(
        known_project,
        # Structured outputs of partner models are off by default: in the tests' own project, and on in others.
        when(
            lambda asked: asked.mode == "json_schema" and asked.parts["project"] == PROJECT,
            "Organization Policy constraint constraints/vertexai.allowedPartnerModelFeatures violated for structured "
            "outputs.",
        ),
        when(
            lambda asked: asked.body.get("anthropic_version") not in ("vertex-2023-10-16", "2026-10-21"),
            "anthropic_version: this is no version",
        ),
        messages_rules,
    ),
    no_model=NO_GEMINI,
)
