"""The local model server keeps to its script, so that tests which rely on it prove something."""

import asyncio
from dataclasses import replace

import pytest

from judges.domain.debate import AGAINST, FOR, PAIR
from judges.domain.verdicts import parse_turn, parse_vote
from judges.errors import ProviderError, RateLimited, Rejected
from judges.prompts.render import TURN_SCHEMA, VOTE_SCHEMA, repair_prompt, turn_prompt, vote_prompt
from judges.providers import close_providers, open_provider
from judges.providers.replies import refusal_error
from judges.records import DebateAgent, Inputs, Judge, ModelRequest, Turn
from tests.modelserver.behaviours import Script, place
from tests.modelserver.fixtures import KEY, LocalModels

SDKS = ["openai", "openai-compatible", "anthropic", "google"]
INPUTS = Inputs("What?", ("That.",), "", 'A mapping maps. This is round 7. You are B. It says "DATA" too.')
HISTORY = {FOR: Turn(1, "You are A. This is round 9."), AGAINST: Turn(0, "no")}


def turn(judge: Judge, seat: DebateAgent, round: int, inputs: Inputs = INPUTS) -> ModelRequest:
    prompt = turn_prompt(inputs, seat, round, None if round == 1 else HISTORY)
    return ModelRequest(judge, prompt, TURN_SCHEMA, inputs, seat.side.value, round)


def vote(judge: Judge, inputs: Inputs = INPUTS) -> ModelRequest:
    return ModelRequest(judge, vote_prompt(inputs), VOTE_SCHEMA, inputs, "vote")


def ask(*requests: ModelRequest) -> list[int | str]:
    """The verdicts of the answers, or the names of the errors, in order and one after the other."""

    async def one(request: ModelRequest) -> int | str:
        try:
            reply = await open_provider(request.judge).complete(request)
        except ProviderError as error:
            return type(error).__name__
        if request.role == "vote":
            return parse_vote(reply.text).verdict
        return parse_turn(reply.text, INPUTS.document).verdict

    async def every() -> list[int | str]:
        try:
            return [await one(request) for request in requests]
        finally:
            await close_providers()

    return asyncio.run(every())


@pytest.mark.parametrize("sdk", ["openai", "openai-compatible", "google"])
def test_more_alternatives_than_the_provider_has_are_refused(model_server: LocalModels, sdk: str) -> None:
    more = {"generationConfig": {"logprobs": 21}} if sdk == "google" else {"top_logprobs": 21}
    judges = [model_server.judge("yes", sdk, logprobs=20, **extra) for extra in ({}, {"extra_body": more})]
    assert ask(*map(vote, judges)) == [1, "Rejected"]


def test_side_and_round_are_read_from_the_end_of_the_prompt_and_never_from_the_document() -> None:
    judge = Judge("j", "openai", "m", id=1)
    assert place(turn(judge, FOR, 1).prompt.user) == ("A", 1)
    assert place(turn(judge, AGAINST, 2).prompt.user) == ("B", 2)
    assert place(repair_prompt(turn(judge, AGAINST, 2).prompt, "no JSON").user) == ("B", 2)


@pytest.mark.parametrize("sdk", SDKS)
def test_verdicts_follow_their_rule(model_server: LocalModels, sdk: str) -> None:
    def debate(rule: str) -> list[int | str]:
        judge = model_server.judge(rule, sdk)
        return ask(*(turn(judge, side, round) for round in (1, 2) for side in PAIR))

    assert debate("yes") == [1, 1, 1, 1]
    assert debate("no") == [0, 0, 0, 0]
    assert debate("stance") == [1, 0, 1, 0]
    assert debate("swap") == [1, 0, 0, 1]
    first, second, third, fourth = debate("converge")
    assert (first, second) == (1, 0) and third == fourth
    assert ask(vote(model_server.judge("hash", sdk))) == [third]


def test_a_script_says_each_turn(model_server: LocalModels) -> None:
    model_server.script(m={"verdict": {"A": ["yes", "no"], "B": ["no"], "vote": "yes"}})
    judge = model_server.judge("m")
    requests = [turn(judge, side, round) for round in (1, 2) for side in PAIR]
    assert ask(*requests, vote(judge)) == [1, 0, 0, 0, 1]


def test_hashed_verdicts_differ_from_pair_to_pair_and_never_for_one(model_server: LocalModels) -> None:
    judges = [model_server.judge(name) for name in ("a", "b")]
    inputs = [replace(INPUTS, document=f"Document {number}.") for number in range(12)]
    first = ask(*(vote(judges[0], each) for each in inputs))
    assert set(first) == {0, 1}
    assert ask(*(vote(judges[1], each) for each in inputs)) == first


def test_behaviours_are_taken_in_turn_by_number_text_and_key(model_server: LocalModels) -> None:
    judge = model_server.judge("m")
    model_server.script(m=[{"fault": "429", "times": 2}, {"fault": "500", "contains": "poison"}, {"verdict": "yes"}])
    poisoned = vote(judge, replace(INPUTS, document="poison"))
    assert ask(vote(judge), vote(judge), poisoned, vote(judge)) == ["RateLimited", "RateLimited", "Overloaded", 1]
    model_server.script({"*": [{"fault": "500", "every": 3}, {"verdict": "no"}]})
    assert ask(*[vote(judge)] * 6) == [0, 0, "Overloaded", 0, 0, "Overloaded"]
    model_server.script(m=[{"fault": "401", "key": KEY}, {"verdict": "yes"}])
    assert ask(vote(judge), vote(replace(judge, api_key_env=""))) == ["Refused", 1]


def test_a_fault_that_is_none_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="unknown fault"):
        Script.load({"m": {"fault": "429s"}})
    with pytest.raises(TypeError):
        Script.load({"m": {"latancy": 1}})


def test_the_log_shows_when_each_call_came_and_was_answered(model_server: LocalModels) -> None:
    model_server.script(m={"verdict": "yes", "latency": 0.2})
    judge = model_server.judge("m")

    async def both() -> None:
        provider = open_provider(judge)
        await asyncio.gather(*(provider.complete(turn(judge, side, 1)) for side in PAIR))
        await close_providers()

    asyncio.run(both())
    sent = model_server.requests()
    assert sorted(each["side"] for each in sent) == ["A", "B"]
    assert max(each["arrived"] for each in sent) < min(each["answered"] for each in sent)
    assert all(0.19 < each["answered"] - each["arrived"] < 2 for each in sent)
    assert len({each["seq"] for each in sent}) == len({each["sha256"] for each in sent}) == 2


def test_a_call_whose_client_went_away_is_in_the_log_without_a_status(model_server: LocalModels) -> None:
    assert ask(vote(model_server.judge("hang", timeout_s=0.1))) == ["Unreachable"]
    assert model_server.stats()["in_flight"] == 0
    assert [each["status"] for each in model_server.requests()] == [None]


def test_google_says_in_the_body_how_long_to_wait() -> None:
    body = '{"error": {"code": 429, "message": "slow down", "details": [{"a": 1}, 7, {"retryDelay": "34.5s"}]}}'
    error = refusal_error("host", 429, body, None)
    assert isinstance(error, RateLimited) and error.retry_after == 34.5
    assert refusal_error("host", 429, body, 2.0).retry_after == 2.0


def test_a_quota_that_is_used_up_does_not_come_back_by_waiting() -> None:
    error = refusal_error("host", 429, '{"error": {"code": "insufficient_quota", "message": "pay\\nfirst"}}', 1.0)
    assert isinstance(error, Rejected) and not error.retry
    assert str(error) == "host: 429 pay first"
