"""Streams end where the wire ends a line, and refusals are told in words; what both mean: test_behaviours.py."""

import json
from typing import Any

import pytest

from judges.engine.answers import Decision, SentCall
from judges.engine.rows import NO_ANSWER, AttemptRow
from judges.errors import BadAnswer
from judges.providers import open_provider
from judges.providers.openai import join_stream
from judges.providers.replies import refusal_error
from judges.records import Body, Judge, Reply, Turn
from tests.judges.presets.asked import run
from tests.judges.providers.test_behaviours import FIREWALL, YES, chat, said
from tests.modelserver.fixtures import LocalModels


def ended(judge: Judge, body: Body) -> tuple[Decision, AttemptRow]:
    async def read() -> Reply:
        return open_provider(judge).meaning(body, judge)

    row = {**NO_ANSWER, "role": "vote", "documents": 0}
    sent = SentCall(row, judge, "text", None, strict=False, may_repair=True, messages="")
    return sent.ended(run(read()))


def decided(judge: Judge, body: Body) -> Decision:
    return ended(judge, body)[0]


SEPARATORS = ("\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e")


def stream(text, *, end="\n", before="", between="", done=True, finish="stop"):
    pieces = [{"content": text[: len(text) // 2]}, {"content": text[len(text) // 2 :]}]
    parts: list[dict[str, Any]] = [{"model": "m", "choices": [{"delta": piece}]} for piece in pieces]
    if finish:
        parts.append({"choices": [{"delta": {}, "finish_reason": finish}]})
        parts.append({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 9}})
    lines = [f"data: {json.dumps(part, ensure_ascii=False)}{end}{end}{between}" for part in parts]
    return before + "".join(lines) + (f"data: [DONE]{end}{end}" if done else "")


@pytest.mark.parametrize("mark", SEPARATORS)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_stream_is_cut_where_the_wire_ends_a_line_and_nowhere_in_its_text(model_server, mark, end):
    text = json.dumps({"response": "yes", "reason": f"It says a{mark}b."}, ensure_ascii=False)
    decision = decided(model_server.judge("m"), Body(200, stream(text, end=end)))
    assert isinstance(decision, Turn) and (mark in decision.reason or mark < "\x20")


@pytest.mark.parametrize(
    "before", ["\ufeff", ": keep-alive\n\n", "event: message\n", "id: 1\n", "retry: 3\n", "\n\n", ":\n\n"]
)
def test_a_stream_may_begin_with_what_the_format_allows(model_server: LocalModels, before: str) -> None:
    body = stream(YES, before=before, between=": ping\n\n" if before[0] == ":" else "event: message\nid: 4\n")
    assert isinstance(decided(model_server.judge("m"), Body(200, body)), Turn)


def test_an_object_may_be_spread_over_lines_and_a_stream_that_is_cut_is_no_label(model_server: LocalModels) -> None:
    lines = json.dumps(chat() | {"choices": [{"delta": {"content": YES}, "finish_reason": "stop"}]}, indent=1)
    body = "".join(f"data: {line}\n" for line in lines.split("\n")) + "\ndata: [DONE]\n\n"
    assert isinstance(decided(model_server.judge("m"), Body(200, body)), Turn)
    with pytest.raises(BadAnswer, match="stream was cut"):
        decided(model_server.judge("m"), Body(200, stream(YES, done=False, finish="")))
    whole = stream(YES)
    for end in range(1, len(whole) - len("data: [DONE]\n\n")):
        found = join_stream(whole[:end])
        assert not found or found.get("error") or found["choices"][0].get("finish_reason") == "stop", whole[:end]


@pytest.mark.parametrize(
    ("text", "remedy"), [(YES[:-2], "raise it"), ("It is mutable. " * 60, "another model or temperature")]
)
def test_a_cut_answer_says_whether_more_tokens_would_help(model_server: LocalModels, text: str, remedy: str) -> None:
    body = Body(200, json.dumps(chat(text, "length")))
    _, row = ended(model_server.judge("m"), body)
    assert row.row["outcome"] == "truncated" and remedy in row.row["error"]


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
