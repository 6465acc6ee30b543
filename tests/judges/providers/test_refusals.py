"""What the reason of a refusal says to people; what refusals mean stands in test_behaviours.py."""

import json
from typing import Any

import pytest

from judges.providers.replies import refusal_error

FIREWALL = (
    "<!DOCTYPE html><html><head><title>Attention Required! | Cloudflare</title><style>a {color: red}</style></head>"
    "<body><h1>Sorry, you have been blocked</h1>" + "<p>Ray ID: 8f2</p>" * 200 + "</body></html>"
)


def said(message: str, **fields: Any) -> dict[str, Any]:
    return {"error": {"message": message, **fields}}


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
    assert str(refusal_error("host", 500, body if isinstance(body, str) else json.dumps(body), None)) == reason


def test_a_reason_is_no_longer_than_a_line() -> None:
    assert len(str(refusal_error("host", 400, json.dumps(said("word " * 400)), None))) <= 220
