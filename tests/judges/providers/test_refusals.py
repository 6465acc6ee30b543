"""What a refusal means: of this text, of the account, of nobody yet; and what its reason says to people."""

import json
from typing import Any

import pytest

from judges.errors import BadAnswer, Declined, Overloaded, ProviderError, RateLimited, Refused, Rejected, Unreachable
from judges.providers.replies import refusal_error

FIREWALL = (
    "<!DOCTYPE html><html><head><title>Attention Required! | Cloudflare</title><style>a {color: red}</style></head>"
    "<body><h1>Sorry, you have been blocked</h1>" + "<p>Ray ID: 8f2</p>" * 200 + "</body></html>"
)
XAI = {
    "code": "The caller does not have permission to execute the specified operation",
    "error": "Content violates usage guidelines. Team: 1, API key ID: 2, Model: grok-4, Failed check: "
    "SAFETY_CHECK_TYPE_BIO",
}
OPENROUTER = {
    "error": {
        "code": 403,
        "message": "Input flagged",
        "metadata": {"reasons": ["violence"], "flagged_input": "how to ...", "provider_name": "OpenAI"},
    }
}
AZURE = {
    "error": {
        "message": "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
        "type": None,
        "param": "prompt",
        "code": "content_filter",
        "status": 400,
        "innererror": {
            "code": "ResponsibleAIPolicyViolation",
            "content_filter_result": {"violence": {"filtered": True, "severity": "medium"}},
        },
    }
}


def said(message: str, **fields: Any) -> dict[str, Any]:
    return {"error": {"message": message, **fields}}


# Status, body, what it is, and a part of the reason.
MEANINGS: list[tuple[int, Any, type[ProviderError], str]] = [
    # Of the text.
    (403, XAI, Declined, "Content violates usage guidelines"),
    (403, OPENROUTER, Declined, "Input flagged"),
    (403, said("Forbidden", metadata={"reasons": ["self-harm"]}), Declined, "Forbidden"),
    (403, said("Blocked", metadata={"flagged_input": "x"}), Declined, "Blocked"),
    (403, said("Your request was refused", code="content_policy_violation"), Declined, "refused"),
    (403, FIREWALL, Declined, "a page of HTML in place of an answer: Attention Required! | Cloudflare"),
    (403, "<html><body>Request blocked</body></html>", Declined, "a page of HTML"),
    (400, AZURE, Declined, "content management policy"),
    (400, said("Content Exists Risk", type="invalid_request_error"), Declined, "Content Exists Risk"),
    (400, said("Input data may contain inappropriate content.", code="data_inspection_failed"), Declined, "inappr"),
    (400, {"code": "DataInspectionFailed", "message": "Input text data is not accepted."}, Declined, "not accepted"),
    (400, said("Invalid prompt: your prompt was flagged", code="invalid_prompt"), Declined, "flagged"),
    (400, said("Your request was rejected", code="content_policy_violation"), Declined, "rejected"),
    (400, said("Output blocked by content filtering policy", type="invalid_request_error"), Declined, "blocked"),
    (400, said("The request was rejected because it was considered high risk"), Declined, "high risk"),
    (400, said("The prompt contains sensitive words that violate Responsible AI practices"), Declined, "sensitive"),
    (451, said("Flagged by moderation"), Declined, "moderation"),
    (422, said("prohibited_content"), Declined, "prohibited"),
    (200, said("Provider returned error", code="content_filter"), Declined, "Provider returned error"),
    # Of the text's length.
    (413, said("Request too large"), Declined, "too large"),
    (413, "<html><head><title>413 Request Entity Too Large</title></head></html>", Declined, "Entity Too Large"),
    (
        400,
        said("This model's maximum context length is 8192 tokens.", code="context_length_exceeded"),
        Declined,
        "8192",
    ),
    (400, said("prompt is too long: 213000 tokens > 200000 maximum"), Declined, "too long"),
    # Of the account, at once.
    (401, said("Invalid key"), Refused, "Invalid key"),
    (402, {"error": {"message": "Insufficient Balance"}}, Refused, "Insufficient Balance"),
    (404, said("The model x does not exist", code="model_not_found"), Refused, "does not exist"),
    (412, said("Account suspended"), Refused, "suspended"),
    (
        400,
        said("You have reached your specified API usage limits. You will regain access on 1 Dec."),
        Refused,
        "regain",
    ),
    (400, said("You have reached your specified workspace API usage limits."), Refused, "workspace"),
    (400, said("Your credit balance is too low to access the API"), Refused, "credit"),
    (400, said("User location is not supported for the API use.", status="FAILED_PRECONDITION"), Refused, "location"),
    (400, said("Precondition check failed.", status="FAILED_PRECONDITION"), Refused, "Precondition"),
    (
        400,
        said("Budget has been exceeded! Current cost: 1.2, Max budget: 1.0", type="budget_exceeded"),
        Refused,
        "Budget",
    ),
    (429, said("Budget has been exceeded!", type="budget_exceeded", code="429"), Refused, "Budget"),
    (400, {"message": "Invocation of model ID x with on-demand throughput isn't supported."}, Refused, "on-demand"),
    (
        400,
        {"message": "Invocation of model ID x with on-demand throughput isn\u2019t supported."},
        Refused,
        "on-demand",
    ),
    (400, {"error": {"code": "Arrearage", "message": "Access denied"}}, Refused, "Access denied"),
    (403, said("Permission denied on resource project x", status="PERMISSION_DENIED"), Refused, "resource"),
    (403, {"message": "The request signature we calculated does not match"}, Refused, "signature"),
    (429, said("You exceeded your current quota", code="insufficient_quota"), Refused, "quota"),
    # Of nobody yet: several documents show it.
    (400, said("Unsupported value: 'temperature' does not support 0 with this model."), Rejected, "temperature"),
    (403, said("scripted 403"), Rejected, "scripted"),
    (422, {"detail": [{"loc": ["body", "x"], "msg": "extra fields not permitted"}]}, Rejected, "extra fields not"),
    (302, "<html><body>Log in</body></html>", Rejected, "302 redirects are not followed; correct the base_url"),
    # Of the moment.
    (408, said("timeout"), Unreachable, "timeout"),
    (409, said("conflict"), Overloaded, "conflict"),
    (424, {"message": "The request failed due to an error while processing the model."}, Overloaded, "processing"),
    (425, said("too early"), Overloaded, "too early"),
    (498, said("flex tier"), Overloaded, "flex"),
    (503, FIREWALL, Overloaded, "Attention Required"),
    (429, said("slow down"), RateLimited, "slow down"),
    (400, said("Failed to generate JSON", code="json_validate_failed"), BadAnswer, "JSON"),
    (200, said("something went wrong"), BadAnswer, "something"),
]


@pytest.mark.parametrize(("status", "body", "kind", "reason"), MEANINGS)
def test_a_refusal_is_of_the_text_of_the_account_or_of_the_moment(
    status: int, body: Any, kind: type[ProviderError], reason: str
) -> None:
    raw = body if isinstance(body, str) else json.dumps(body)
    error = refusal_error("host", status, raw, None)
    assert type(error) is kind, error
    assert reason in str(error) and str(error).startswith(f"host: {status} ")
    assert error.raw == raw, "what came is kept whole"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (FIREWALL, "host: 500 a page of HTML in place of an answer: Attention Required! | Cloudflare"),
        ({"error": FIREWALL}, "host: 500 a page of HTML in place of an answer: Attention Required! | Cloudflare"),
        ("<html><body>" + "x " * 900, "host: 500 a page of HTML, no answer"),
        ({"error": "Model   crashed\nagain"}, "host: 500 Model crashed again"),
        ([{"error": {"message": "A list, as Google streams it"}}], "host: 500 A list, as Google streams it"),
        ({"detail": {"message": "Deep &amp; down"}}, "host: 500 Deep &amp; down"),
        ({"error": {"message": "<b>Bold</b> &amp; plain"}}, "host: 500 Bold & plain"),
        (
            {"error": {"message": "Provider returned error", "metadata": {"raw": '{"error": {"message": "no GPU"}}'}}},
            "host: 500 Provider returned error: no GPU",
        ),
        ("", "host: 500"),
        ("[", "host: 500 ["),
    ],
)
def test_a_reason_is_short_plain_words(body: Any, reason: str) -> None:
    """D24: it was 300 characters of HTML."""
    assert str(refusal_error("host", 500, body if isinstance(body, str) else json.dumps(body), None)) == reason


def test_a_reason_is_no_longer_than_a_line() -> None:
    assert len(str(refusal_error("host", 400, json.dumps(said("word " * 400)), None))) <= 220
