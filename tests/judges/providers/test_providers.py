"""Providers with the real SDKs against the local server: what comes back is kept, whatever it is."""

import asyncio
import json
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.env import ROOT
from judges.domain.debate import PAIR
from judges.errors import BadAnswer, Overloaded, ProviderError, RateLimited, Rejected, Unreachable
from judges.prompts.render import TURN_SCHEMA, VOTE_SCHEMA, turn_prompt, vote_prompt
from judges.providers import open_provider
from judges.providers.anthropic import AnthropicProvider
from judges.providers.google import GoogleProvider
from judges.providers.openai import OpenAIProvider
from judges.providers.rerank import RerankProvider
from judges.records import Inputs, Judge, ModelRequest, Reply
from tests.judges.presets.asked import ask as ask_all
from tests.judges.presets.asked import plain_vote, run
from tests.modelserver.fixtures import KEY, KEY_ENV, LocalModels

SDKS = ["openai", "openai-compatible", "anthropic", "google"]
ODD_BODIES = [
    "[]",
    "null",
    "7",
    '{"choices": null, "content": null, "candidates": null}',
    '{"choices": [], "content": [], "candidates": []}',
    '{"choices": [7], "content": [7], "candidates": [7]}',
    '{"choices": {"a": 1}, "content": "text", "candidates": 7, "usage": 7, "usageMetadata": []}',
    '{"choices": [{"message": {"content": ["x"]}, "finish_reason": 7}], "content": [{"text": 7}], "candidates": '
    '[{"content": {"parts": 7}, "finishReason": {}}], "usage": {"prompt_tokens": "9", "input_tokens": -1}}',
    '{"choices": [{"message": {"content": "\\ud800\\u0000"}}], "content": [{"text": "\\ud800"}], "usage": null}',
    '{"error": "plain"}',
    '{"error": {"code": "x", "message": 7}, "choices": [], "content": [], "candidates": []}',
    "[" * 5000,
]
INPUTS = Inputs("What does a mapping map?", ("Hashable values.",), "", "A mapping maps hashable values. It is mutable.")


def request(judge: Judge) -> ModelRequest:
    return plain_vote(judge, inputs=INPUTS)


def ask(judge: Judge) -> Reply:
    return ask_all(request(judge))[0]


@pytest.mark.parametrize("sdk", SDKS)
def test_an_answer_comes_with_text_usage_finish_reason_and_body(model_server: LocalModels, sdk: str) -> None:
    reply = ask(model_server.judge("yes", sdk))
    assert json.loads(reply.text)["response"] == "yes"
    assert reply.finish_reason == "stop" and not reply.truncated and not reply.refused
    assert reply.usage.input > 100 and reply.usage.output > 1
    assert reply.model == "yes" and reply.status == 200
    assert json.dumps(reply.text) in reply.raw
    assert ask(model_server.judge("other-model", sdk)).model == "another-model"


@pytest.mark.parametrize("sdk", SDKS)
def test_cached_input_is_part_of_input_and_reasoning_part_of_output(model_server: LocalModels, sdk: str) -> None:
    model_server.script({"m": {"verdict": "yes"}})
    plain = ask(model_server.judge("m", sdk)).usage
    model_server.script({"m": {"verdict": "yes", "cached": 40, "reasoning": 7}})
    usage = ask(model_server.judge("m", sdk)).usage
    assert (usage.input, usage.cached) == (plain.input, 40)
    if sdk != "anthropic":
        assert (usage.output, usage.reasoning) == (plain.output + 7, 7)


# What a judge of each provider answers without failing: (fault, text or None for any, finish reason).
ANSWERED = [
    ("truncated", None, "length"),
    ("filtered", "", "refusal"),
    ("garbage", "Well, it depends. I would say yes and no.", "stop"),
    ("schema", '{"relevance": 1}', "stop"),
    ("empty", "", "stop"),
    ("refused", None, "refusal"),
]


@pytest.mark.parametrize(("fault", "text", "finish"), ANSWERED)
@pytest.mark.parametrize("sdk", SDKS)
def test_nothing_that_was_paid_for_is_lost(model_server, sdk, fault, text, finish):
    reply = ask(model_server.judge(fault, sdk))
    assert reply.finish_reason == finish
    assert text is None or reply.text == text
    assert reply.usage.input > 100 and reply.usage.output >= 1
    body = json.loads(reply.raw)
    assert fault in (body.get("model"), body.get("modelVersion"))


FAILED = [
    ("429", RateLimited, 429, "scripted 429"),
    ("400", Rejected, 400, "scripted 400"),
    ("403", Rejected, 403, "scripted 403"),
    ("500", Overloaded, 500, "scripted 500"),
    ("503", Overloaded, 503, "scripted 503"),
    ("error-body", ProviderError, None, "scripted error under 200"),
    ("not-json", BadAnswer, 200, "<html>Bad gateway</html>"),
    ("no-body", BadAnswer, 200, ""),
    ("redirect", Rejected, 307, ""),
    ("drop", Unreachable, None, ""),
    ("half", Unreachable, 200, '"usage'),
]


@pytest.mark.parametrize(("fault", "kind", "status", "raw"), FAILED)
@pytest.mark.parametrize("sdk", SDKS)
def test_a_failed_call_is_one_call_and_says_whether_to_try_again(model_server, sdk, fault, kind, status, raw):
    with pytest.raises(kind) as caught:
        ask(model_server.judge(fault, sdk))
    error = caught.value
    assert error.retry == (kind is not Rejected)
    assert error.status == status or fault == "error-body"
    assert raw in error.raw or (fault == "half" and error.raw.startswith("{"))
    assert f"127.0.0.1:{model_server.port}" in str(error) and "\n" not in str(error)
    assert len(model_server.requests()) == 1


@pytest.mark.parametrize("sdk", SDKS)
def test_an_answer_of_10_mb_is_cut_and_kept(model_server: LocalModels, sdk: str) -> None:
    with pytest.raises(BadAnswer, match="longer than 4000000 bytes") as caught:
        ask(model_server.judge("huge", sdk))
    assert len(caught.value.raw) == 4_000_000


@pytest.mark.parametrize("sdk", SDKS)
def test_a_dripping_answer_ends_at_the_time_limit_and_its_part_is_kept(model_server: LocalModels, sdk: str) -> None:
    with pytest.raises(Unreachable, match=r"within 0\.3 s") as caught:
        ask(model_server.judge("drip", sdk, timeout_s=0.3))
    assert caught.value.raw.startswith("{") and caught.value.retry


@pytest.mark.parametrize("sdk", SDKS)
@pytest.mark.parametrize("fault", ["429", "503"])
def test_retry_after_is_read_in_seconds_and_as_a_date(model_server: LocalModels, sdk: str, fault: str) -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=600), usegmt=True)
    for header, low, high in (("2", 2, 2), ("1.5", 1.5, 1.5), (date, 300, 601), ("-3", 0, 0)):
        model_server.script({"m": {"fault": fault, "retry_after": header}})
        with pytest.raises(ProviderError) as caught:
            ask(model_server.judge("m", sdk))
        assert caught.value.retry_after is not None
        assert low <= caught.value.retry_after <= high
    model_server.script({"m": {"fault": fault, "retry_after": "soon"}})
    with pytest.raises(ProviderError) as caught:
        ask(model_server.judge("m", sdk))
    assert caught.value.retry_after is None


@pytest.mark.parametrize("sdk", SDKS)
def test_the_request_has_the_wire_format_of_its_provider(model_server: LocalModels, sdk: str) -> None:
    judge = model_server.judge("yes", sdk, max_output_tokens=77, **({} if sdk == "anthropic" else {"top_p": 0.5}))
    ask(judge)
    (sent,) = model_server.requests()
    body, schema = sent["body"], VOTE_SCHEMA
    assert sent["key"] == KEY
    assert sent["user"] == vote_prompt(INPUTS).user and sent["system"] == vote_prompt(INPUTS).system
    if sdk == "anthropic":
        assert sent["path"] == "/v1/messages" and body["max_tokens"] == 77
        assert "temperature" not in body and "top_p" not in body
    elif sdk == "google":
        assert sent["path"] == "/v1beta/models/yes:generateContent"
        assert body["generationConfig"] == {
            "temperature": 0,
            "topP": 0.5,
            "maxOutputTokens": 77,
            "responseMimeType": "application/json",
            "responseJsonSchema": schema,
        }
    else:
        limit = "max_completion_tokens" if sdk == "openai" else "max_tokens"
        assert sent["path"] == "/v1/chat/completions"
        assert (body["temperature"], body["top_p"], body[limit]) == (0, 0.5, 77)
        assert body["response_format"]["json_schema"] == {"name": "answer", "schema": schema, "strict": True}


@pytest.mark.parametrize(("wanted", "asked"), [(5, 5), (1, 1), (True, 20)])
@pytest.mark.parametrize("sdk", ["openai", "openai-compatible", "google"])
def test_logprobs_are_asked_for_when_the_judge_says_so(model_server, sdk, wanted, asked):
    """`true` asks for the most that providers give: one alternative alone would hide the answer not given."""
    found = ask(model_server.judge("yes", sdk, logprobs=wanted))
    body = model_server.requests()[0]["body"]
    config = body.get("generationConfig", body)
    flag, number = ("logprobs", "top_logprobs") if config is body else ("responseLogprobs", "logprobs")
    assert config[flag] is True and (config[number], type(config[number])) == (asked, int)
    verdict = next(token for token in found.tokens if token.text == "yes")
    assert len(verdict.others) == min(asked, 3) and ("no" in verdict.others) == (asked > 1)


def test_anthropics_breakpoints_stand_where_the_prompt_stops_repeating(model_server: LocalModels) -> None:
    """After the query for every call, and in a debate after the document too, for the rounds to come."""
    judge = model_server.judge("yes", "anthropic")
    asked = [(request(judge), 1)]
    asked += [
        (ModelRequest(judge, turn_prompt(INPUTS, seat, 1), TURN_SCHEMA, INPUTS, seat.side.value, 1), 2) for seat in PAIR
    ]
    for one, breakpoints in asked:
        model_server.reset()
        ask_all(one)
        (sent,) = model_server.requests()
        blocks = sent["body"]["messages"][0]["content"]
        assert ["cache_control" in block for block in blocks] == [True] * breakpoints + [False]
        assert "".join(block["text"] for block in blocks) == one.prompt.user
        assert "Hashable values" in blocks[0]["text"] and INPUTS.document not in blocks[0]["text"]
        assert breakpoints == 1 or (INPUTS.document in blocks[1]["text"] and "You are" not in blocks[1]["text"])
        assert "cache_control" in sent["body"]["system"][0]


@pytest.mark.parametrize("sdk", SDKS)
def test_without_its_key_nothing_is_sent(model_server: LocalModels, sdk: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEY_ENV)
    with pytest.raises(Rejected, match=r"Set the environment .*QUORUM_TEST_KEY"):
        ask(model_server.judge("yes", sdk))
    assert model_server.requests() == []


@pytest.mark.parametrize("key", ["two words", "schlüssel", "line\nbreak"])
def test_a_key_that_cannot_be_one_is_refused_without_showing_it(model_server, monkeypatch, key):
    monkeypatch.setenv(KEY_ENV, key)
    with pytest.raises(Rejected, match="QUORUM_TEST_KEY holds characters") as caught:
        ask(model_server.judge("yes"))
    assert key not in str(caught.value)


@pytest.mark.parametrize("sdk", SDKS)
def test_a_request_that_cannot_be_made_is_rejected_and_nothing_is_sent(model_server: LocalModels, sdk: str) -> None:
    judge = model_server.judge("yes", sdk)
    broken = replace(request(judge), prompt=replace(vote_prompt(INPUTS), user="\ud800"))

    if sdk == "google":  # It escapes what is not ASCII, so this one can be sent.
        ask_all(broken)
        return
    with pytest.raises(Rejected, match="could not be made"):
        ask_all(broken)
    assert model_server.requests() == []


def test_a_compatible_server_needs_no_key(model_server: LocalModels, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "not-for-this-server")
    ask(model_server.judge("yes", api_key_env=""))
    assert model_server.requests()[0]["key"] == ""


def test_the_key_is_read_when_the_call_is_made(model_server: LocalModels, monkeypatch: pytest.MonkeyPatch) -> None:
    judge = model_server.judge("yes")

    async def twice() -> None:
        await open_provider(judge).complete(request(judge))
        monkeypatch.setenv(KEY_ENV, "another-key")
        await open_provider(judge).complete(request(judge))

    run(twice())
    assert [sent["key"] for sent in model_server.requests()] == [KEY, "another-key"]


@pytest.mark.parametrize("sdk", SDKS)
def test_tests_can_call_no_other_host(model_server: LocalModels, sdk: str) -> None:
    for base_url in ("", "https://example.org/v1", "http://127.0.0.1.example.org", "http://192.0.2.1:80"):
        judge = model_server.judge("yes", sdk, base_url=base_url)
        if base_url or sdk != "openai-compatible":
            with pytest.raises(Rejected, match="QUORUM_LOOPBACK_ONLY"):
                ask(judge)


@pytest.mark.parametrize("sdk", SDKS)
def test_variables_of_the_sdks_change_neither_address_nor_credentials(model_server, sdk, monkeypatch):
    for name in ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "GOOGLE_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(name, "stray-secret")
    monkeypatch.setenv("OPENAI_ORG_ID", "our-organisation")
    monkeypatch.setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "our-project")
    ask(model_server.judge("yes", sdk))
    (sent,) = model_server.requests()
    assert sent["key"] == KEY
    assert "stray-secret" not in json.dumps(sent) and "our-project" not in json.dumps(sent)
    assert ("our-organisation" in json.dumps(sent)) == (sdk == "openai")


@pytest.mark.parametrize("sdk", SDKS)
def test_connections_of_one_account_are_used_again(model_server: LocalModels, sdk: str) -> None:
    judge = model_server.judge("yes", sdk)

    async def many() -> None:
        assert open_provider(judge) is open_provider(model_server.judge("b", sdk, name="b"))
        assert open_provider(judge) is not open_provider(model_server.judge("a", sdk, api_key_env="OTHER_KEY"))
        for _ in range(3):
            provider = open_provider(judge)
            await asyncio.gather(*(provider.complete(request(judge)) for _ in range(10)))

    before = model_server.stats()["connections"]
    run(many())
    assert len({sent["connection"] for sent in model_server.requests()}) <= 10
    assert model_server.stats()["connections"] - before <= 11


@pytest.mark.parametrize("sdk", SDKS)
@pytest.mark.parametrize("body", ODD_BODIES)
def test_any_json_under_200_is_a_reply_or_a_provider_error(model_server: LocalModels, sdk: str, body: str) -> None:
    """No odd body breaks the reader: not the wrong types, nor text that no database can hold."""
    judge = model_server.judge("m", sdk)
    model_server.script({"m": {"body": body}})
    try:
        reply = ask(judge)
    except ProviderError as error:
        assert error.raw == body
    else:
        assert reply.raw == body
        assert min(reply.usage.input, reply.usage.output) >= 0
        reply.text.encode()


WORDS = [
    *("choices", "message", "content", "refusal", "finish_reason", "usage", "prompt_tokens", "completion_tokens"),
    *("model", "text", "stop_reason", "candidates", "parts", "thought", "finishReason", "promptFeedback"),
    *("blockReason", "usageMetadata", "prompt_tokens_details", "cached_tokens"),
]
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(WORDS), inner, max_size=6)),
    max_leaves=25,
)


KEYS = ["choices", "content", "candidates", "usage", "usageMetadata", "model", "answers", "prompt_feedback", "results"]


@given(st.dictionaries(st.sampled_from(KEYS), JSON))
def test_no_json_object_breaks_a_reader(body: dict[str, Any]) -> None:
    judge = Judge("any", "openai", "any", id=1, parameters={"scale": "0-3"})
    for kind in (OpenAIProvider, AnthropicProvider, GoogleProvider, RerankProvider):
        reply = object.__new__(kind).read(body, judge)
        if reply is not None:
            assert len(reply.finish_reason) <= 50
            assert min(reply.usage.input, reply.usage.cached, reply.usage.output, reply.usage.reasoning) >= 0
            assert "\0" not in reply.text + reply.finish_reason + reply.model
            (reply.text + reply.finish_reason + reply.model).encode()


def test_the_sdks_are_loaded_only_when_a_judge_needs_them() -> None:
    code = (
        "import sys, judges.providers, judges.costs.prices, judges.panels.judges_file, judges.probes.checks;"
        "sys.exit(bool({'openai', 'anthropic', 'google.genai', 'genai_prices', 'django.db'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
