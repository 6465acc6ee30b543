"""How answers end: only by a known good reason, and streams only where the wire ends a line."""

import asyncio
import json
from typing import Any

import pytest
from google.genai import types

from judges.domain.verdicts import NoVerdict
from judges.engine.answers import Decision, Retry, Sent
from judges.engine.rows import NO_ANSWER
from judges.errors import BadAnswer, Refused
from judges.providers import close_providers, open_provider
from judges.providers.openai import join_stream
from judges.records import Body, Judge, Reply, Turn
from tests.modelserver.fixtures import LocalModels

YES = '{"response": "yes", "reason": "It does."}'
CHAT_GOOD = ("stop", "tool_calls", "function_call", "eos", "eos_token", "stop_sequence", "end_turn", None)
CHAT_REFUSED = ("content_filter", "content_filter: SAFETY", "sensitive")
CHAT_BROKEN = ("error", "abort", "network_error", "insufficient_system_resource")
CHAT_OTHER = ("load", "repetition", "something_new", "pause_turn")


def decided(judge: Judge, body: Body) -> Decision:
    async def read() -> Reply:
        try:
            return open_provider(judge).meaning(body, judge)
        finally:
            await close_providers()

    row = {**NO_ANSWER, "role": "vote", "documents": 0}
    sent = Sent(row, judge, "text", None, strict=False, may_repair=True, messages="")
    return sent.ended(asyncio.run(read()))[0]


def chat(finish: object) -> dict[str, Any]:
    counts = {"prompt_tokens": 9, "completion_tokens": 9}
    return {"choices": [{"message": {"content": YES}, "finish_reason": finish}], "usage": counts, "model": "m"}


@pytest.mark.parametrize(
    ("finish", "outcome"),
    [
        *((finish, "labelled") for finish in CHAT_GOOD),
        *((finish, "refused") for finish in CHAT_REFUSED),
        *((finish, "again") for finish in CHAT_BROKEN),
        *((finish, "unparsed") for finish in CHAT_OTHER),
        *((finish, "truncated") for finish in ("length", "max_tokens", "model_length")),
    ],
)
def test_complete_json_beside_a_finish_reason_that_is_not_good_is_no_vote(
    model_server: LocalModels, finish: object, outcome: str
) -> None:
    decision = decided(model_server.judge("m"), Body(200, json.dumps(chat(finish))))
    if outcome == "labelled":
        assert isinstance(decision, Turn)
    elif outcome == "again":
        assert decision == Retry(), "asked once more as it was, and not repaired"
    else:
        assert decision == NoVerdict(outcome), "and no repair is paid for"


LIMITED = "PUP_LIMITED_DISABLED"
GOOGLES = {*types.FinishReason.__members__, "ESCALATION", "MODEL_ARMOR", "CONTINUATION", "NEW"} - {LIMITED}


@pytest.mark.parametrize("finish", sorted(GOOGLES))
def test_of_googles_finish_reasons_stop_alone_is_a_vote(model_server: LocalModels, finish: str) -> None:
    candidate = {"content": {"parts": [{"text": YES}]}, "finishReason": finish}
    counts = {"promptTokenCount": 9, "candidatesTokenCount": 9}
    judge = model_server.judge("m", "google")
    body = Body(200, json.dumps({"candidates": [candidate], "usageMetadata": counts}))
    decision = decided(judge, body)
    assert isinstance(decision, Turn) == (finish == "STOP")
    if finish in ("SAFETY", "ESCALATION", "MODEL_ARMOR", "IMAGE_SAFETY"):
        assert decision == NoVerdict("refused")


def test_an_account_that_google_has_limited_is_refused(model_server: LocalModels) -> None:
    candidate = {"content": {"parts": [{"text": YES}]}, "finishReason": LIMITED}
    with pytest.raises(Refused, match="limited this account"):
        decided(model_server.judge("m", "google"), Body(200, json.dumps({"candidates": [candidate]})))


@pytest.mark.parametrize("provider", ["anthropic", "openai-responses"])
@pytest.mark.parametrize("end", ["pause_turn", "cancelled", "in_progress", "new"])
def test_the_other_wires_have_lists_of_good_ends_too(model_server: LocalModels, provider: str, end: str) -> None:
    judge = model_server.judge("m", provider)
    counts = {"input_tokens": 9, "output_tokens": 9}
    said: dict[str, Any] = {"usage": counts, "content": [{"type": "text", "text": YES}], "stop_reason": end}
    if provider == "openai-responses":
        content = [{"type": "output_text", "text": YES}]
        said = {"usage": counts, "output": [{"type": "message", "content": content}], "status": end}
    assert decided(judge, Body(200, json.dumps(said))) == NoVerdict("unparsed")


SEPARATORS = ("\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e")


def stream(
    text: str, *, end: str = "\n", before: str = "", between: str = "", done: bool = True, finish: str = "stop"
) -> str:
    pieces = [{"content": text[: len(text) // 2]}, {"content": text[len(text) // 2 :]}]
    parts: list[dict[str, Any]] = [{"model": "m", "choices": [{"delta": piece}]} for piece in pieces]
    if finish:
        parts.append({"choices": [{"delta": {}, "finish_reason": finish}]})
        parts.append({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 9}})
    lines = [f"data: {json.dumps(part, ensure_ascii=False)}{end}{end}{between}" for part in parts]
    return before + "".join(lines) + (f"data: [DONE]{end}{end}" if done else "")


@pytest.mark.parametrize("mark", SEPARATORS)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_stream_is_cut_where_the_wire_ends_a_line_and_nowhere_in_its_text(
    model_server: LocalModels, mark: str, end: str
) -> None:
    """D9: 5 of 20 documents, paid for without end."""
    text = json.dumps({"response": "yes", "reason": f"It says a{mark}b."}, ensure_ascii=False)
    decision = decided(model_server.judge("m"), Body(200, stream(text, end=end)))
    assert isinstance(decision, Turn) and (mark in decision.reason or mark < "\x20")


@pytest.mark.parametrize(
    "before", ["\ufeff", ": keep-alive\n\n", "event: message\n", "id: 1\n", "retry: 3\n", "\n\n", ":\n\n"]
)
def test_a_stream_may_begin_with_what_the_format_allows(model_server: LocalModels, before: str) -> None:
    body = stream(YES, before=before, between=": ping\n\n" if before[0] == ":" else "event: message\nid: 4\n")
    assert isinstance(decided(model_server.judge("m"), Body(200, body)), Turn)


def test_an_object_may_be_spread_over_lines_of_data(model_server: LocalModels) -> None:
    lines = json.dumps(chat("stop") | {"choices": [{"delta": {"content": YES}, "finish_reason": "stop"}]}, indent=1)
    body = "".join(f"data: {line}\n" for line in lines.split("\n")) + "\ndata: [DONE]\n\n"
    assert isinstance(decided(model_server.judge("m"), Body(200, body)), Turn)


def test_a_stream_that_is_cut_before_its_end_is_no_label(model_server: LocalModels) -> None:
    with pytest.raises(BadAnswer, match="cut before the answer's end"):
        decided(model_server.judge("m"), Body(200, stream(YES, done=False, finish="")))
    whole = stream(YES)
    for end in range(1, len(whole) - len("data: [DONE]\n\n")):
        found = join_stream(whole[:end])
        assert not found or found.get("error") or found["choices"][0].get("finish_reason") == "stop", whole[:end]


@pytest.mark.parametrize("body", [json.dumps(chat("stop")), json.dumps(chat("stop"), indent=1)])
def test_a_body_may_begin_with_a_byte_order_mark(model_server: LocalModels, body: str) -> None:
    assert isinstance(decided(model_server.judge("m"), Body(200, "\ufeff" + body)), Turn)
