"""Look-alikes of the local model server: they refuse what their provider refuses, and keep to the server's script."""

import json
import urllib.error
import urllib.request
from typing import Any

import pytest

from judges.prompts.render import TURN_SCHEMA, VOTE_SCHEMA, turn_prompt, vote_prompt
from judges.records import DebateAgent, Inputs, Side
from tests.modelserver.fixtures import KEY, LocalModels
from tests.modelserver.presets import LOOK_ALIKES

INPUTS = Inputs("What?", (), "", "A mapping maps. It is mutable.")
VOTE = vote_prompt(INPUTS)
BINDING = {"type": "json_schema", "json_schema": {"name": "answer", "schema": VOTE_SCHEMA, "strict": True}}


def post(models: LocalModels, path: str, body: dict[str, Any], **headers: str) -> tuple[int, dict[str, Any]]:
    """Status and body of one call; the key is sent unless headers are given."""
    sent = headers or {"Authorization": f"Bearer {KEY}"}
    request = urllib.request.Request(f"{models.google}{path}", data=json.dumps(body).encode(), headers=sent)
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def chat(model: str = "yes", **more: Any) -> dict[str, Any]:
    messages = [{"role": "system", "content": VOTE.system}, {"role": "user", "content": VOTE.user}]
    return {"model": model, "messages": messages, "response_format": BINDING, **more}


OPENAI = "/openai/v1/chat/completions"


def said(body: dict[str, Any]) -> Any:
    return json.loads(body["choices"][0]["message"]["content"])["response"]


def test_every_look_alike_has_the_name_of_its_path() -> None:
    assert "openai" in LOOK_ALIKES
    assert all(name == one.name and one.home.startswith("/") for name, one in LOOK_ALIKES.items() if one.home)


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (chat(), 200, ""),
        (chat(top_k=4), 400, "top_k"),
        (chat(logprobs=True, top_logprobs=21), 400, "20"),
        (chat(top_logprobs=2), 400, "logprobs"),
        (chat(stream_options={"include_usage": True}), 400, "stream_options"),
        (chat("no-such-model"), 404, "no-such-model"),
    ],
)
def test_a_look_alike_refuses_what_its_provider_refuses(
    model_server: LocalModels, body: dict[str, Any], status: int, words: str
) -> None:
    answered, told = post(model_server, OPENAI, body)
    assert answered == status
    assert said(told) == "yes" if status == 200 else words in told["error"]["message"]


def test_a_look_alike_wants_a_key_and_its_own_path(model_server: LocalModels) -> None:
    assert post(model_server, OPENAI, chat(), Accept="*/*")[0] == 401
    assert post(model_server, "/openai/v2/chat/completions", chat())[0] == 404


def test_thoughts_come_before_the_answer_and_may_leave_nothing_of_it(model_server: LocalModels) -> None:
    model_server.script(m={"verdict": "yes", "reasoning": 600})
    _, cut = post(model_server, OPENAI, chat("m", max_completion_tokens=512))
    assert cut["choices"][0]["finish_reason"] == "length" and cut["choices"][0]["message"]["content"] == ""
    assert cut["usage"]["completion_tokens"] == 512
    _, whole = post(model_server, OPENAI, chat("m", max_completion_tokens=4096))
    assert said(whole) == "yes" and whole["choices"][0]["finish_reason"] == "stop"
    assert whole["usage"]["completion_tokens_details"]["reasoning_tokens"] == 600


def test_the_script_holds_for_look_alikes(model_server: LocalModels) -> None:
    model_server.script(
        m=[{"fault": "429", "times": 1}, {"fault": "no-usage", "times": 1}, {"context": 100, "times": 1}]
    )
    assert post(model_server, OPENAI, chat("m"))[0] == 429
    assert "usage" not in post(model_server, OPENAI, chat("m"))[1]
    status, told = post(model_server, OPENAI, chat("m"))
    assert (status, told["error"]["code"]) == (400, "context_length_exceeded")
    model_server.script(m={"verdict": "no", "around": ["```json\n", "\n```"]})
    content = post(model_server, OPENAI, chat("m"))[1]["choices"][0]["message"]["content"]
    assert content.startswith("```json\n{") and content.endswith("}\n```")


def test_a_tool_that_is_forced_is_called(model_server: LocalModels) -> None:
    tool = {"type": "function", "function": {"name": "answer", "parameters": VOTE_SCHEMA}}
    forced = {"type": "function", "function": {"name": "answer"}}
    body = {**chat(), "response_format": None, "tools": [tool], "tool_choice": forced}
    message = post(model_server, OPENAI, body)[1]["choices"][0]["message"]
    assert message["content"] is None
    called = message["tool_calls"][0]["function"]
    assert called["name"] == "answer" and json.loads(called["arguments"])["response"] == "yes"


def test_without_a_schema_the_words_of_the_prompt_say_what_is_asked(model_server: LocalModels) -> None:
    prompt = turn_prompt(INPUTS, DebateAgent(Side.FOR), 1, None)
    messages = [{"role": "system", "content": prompt.system}, {"role": "user", "content": prompt.user}]
    _, told = post(model_server, OPENAI, {"model": "yes", "messages": messages})
    assert set(json.loads(told["choices"][0]["message"]["content"])) == set(TURN_SCHEMA["properties"])
