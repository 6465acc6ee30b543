"""What the reason of a refusal says to people; what refusals mean stands in test_behaviours.py."""

import json
from typing import Any

import pytest

from judges.errors import RateLimited, Rejected
from judges.providers.replies import refusal_error
from tests.judges.providers.test_behaviours import FIREWALL, said


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


def test_google_says_in_the_body_how_long_to_wait() -> None:
    body = '{"error": {"code": 429, "message": "slow down", "details": [{"a": 1}, 7, {"retryDelay": "34.5s"}]}}'
    error = refusal_error("host", 429, body, None)
    assert isinstance(error, RateLimited) and error.retry_after == 34.5
    assert refusal_error("host", 429, body, 2.0).retry_after == 2.0


def test_a_quota_that_is_used_up_does_not_come_back_by_waiting() -> None:
    error = refusal_error("host", 429, '{"error": {"code": "insufficient_quota", "message": "pay\\nfirst"}}', 1.0)
    assert isinstance(error, Rejected) and not error.retry
    assert str(error) == "host: 429 pay first"
