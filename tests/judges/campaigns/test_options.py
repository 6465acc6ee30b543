"""The papers' options of a campaign, through real workers and SDKs against the scripted server."""

import math
from typing import Any

import pytest

from corpus.errors import BadInput
from corpus.labels import rebuild_labels
from corpus.models import Label
from judges.campaigns import configurations
from judges.models import Attempt, Audit, Campaign, Work
from judges.records import Judge
from tests.called import call
from tests.engine_parts import collection_of, judge, make_judge, make_panel, scene, sums_up
from tests.modelserver.fixtures import LocalModels


@pytest.fixture
def pair(instance: dict[str, str], model_server: LocalModels) -> None:
    """A collection of one pair, and the default panel."""
    scene(model_server, 1)


def said(role: str) -> list[tuple[str, int, int, int | None]]:
    rows = Attempt.objects.filter(role=role, counts=True).order_by("pair", "round", "agent_pair", "place")
    return [(row.judge.name, row.round, row.agent_pair + row.place, row.verdict) for row in rows]


def test_irrelevant_first_gives_agent_a_the_other_stance(pair: None, models: LocalModels) -> None:
    assert judge("--policy", "debate", "--stance-order", "irrelevant-first").json["labels"] == {"1": 1}
    assert said("against") == [("a", 1, 0, 1)] and said("for") == [("b", 1, 0, 1)]
    first = Campaign.objects.get()
    assert first.protocol == {"stance_order": "irrelevant-first"}
    assert judge("--policy", "debate").json["campaign"] != first.number  # another order is another campaign


def test_four_agents_of_two_judges_hold_both_stances_each_and_all_must_agree(models: LocalModels) -> None:
    scene(models, 1, debate=("yes", "d"))
    models.script(d={"verdict": {"C": ["no", "yes"], "D": ["yes", "yes"], "A": "yes", "B": "yes", "vote": "yes"}})
    status = judge("--policy", "debate", "--agents", "4").json
    assert status["agreed_in_round"] == {"2": 1} and status["calls"] == 8
    assert said("for") == [("a", 1, 0, 1), ("b", 1, 1, 0), ("a", 2, 0, 1), ("b", 2, 1, 1)]
    assert said("against") == [("a", 1, 0, 1), ("b", 1, 1, 1), ("a", 2, 0, 1), ("b", 2, 1, 1)]


def test_three_agents_that_do_not_all_agree_go_to_people(models: LocalModels) -> None:
    scene(models, 1, debate=("yes", "yes"))
    make_judge(models, "c", "no")
    status = judge("--policy", "debate", "--debaters", "a,b,c").json
    assert status["escalations"] == {"disagreement": 1} and status["calls"] == 6


def test_a_judge_settles_what_the_debate_leaves_open(models: LocalModels) -> None:
    collection_of(1).save()
    make_panel(models, debate=("stance", "stance"))
    make_judge(models, "senior", "no")
    status = judge("--policy", "debate", "--adjudicator", "senior").json
    assert status["labels"] == {"0": 1} and status["agreed_in_round"] == {} and sums_up(status)
    assert said("adjudicate") == [("senior", 2, 0, 0)]
    user = next(r for r in models.requests() if r["model"] == "no")["user"]
    assert "settle" in user.lower() and "of A in round 2" in user and "round 1" not in user


def test_an_adjudicator_that_refuses_leaves_the_pair_to_people(models: LocalModels) -> None:
    scene(models, 1, debate=("stance", "stance"))
    make_judge(models, "senior", "no+refused")
    status = judge("--policy", "debate", "--adjudicator", "senior").json
    assert status["escalations"] == {"disagreement": 1}


def test_the_filter_drops_only_what_all_three_families_reject(models: LocalModels) -> None:
    books = collection_of(3)
    books.audit = 1.0
    books.save()
    make_panel(models)
    models.script(
        gemma=[
            {"verdict": "no", "contains": "number 0"},
            {"verdict": "no", "contains": "number 2"},
            {"verdict": "yes"},
        ],
        mistral={"verdict": "no"},
        phi=[{"fault": "refused", "contains": "number 2"}, {"verdict": "no"}],
    )
    for name in ("gemma", "mistral", "phi"):
        make_judge(models, name)
    status = judge("--filter", "gemma,mistral,phi").json
    assert status["labels"] == {"0": 1, "1": 2} and sums_up(status)
    assert len(said("filter")) == 9 and len(said("vote")) == 10  # nothing else is asked of the dropped pair
    assert Work.objects.get(label=0).agreed_in_round is None
    assert Audit.objects.get(label=0).stratum == "r0.m0.n.filter"


def test_a_filter_of_one_family_is_refused(pair: None, model_server: LocalModels, instance: dict[str, str]) -> None:
    for name in ("gpt-a", "gpt-b", "claude-c"):
        make_judge(model_server, name)
    refused = judge("--filter", "gpt-a,gpt-b,claude-c")
    assert refused.code == 2 and "gpt-a and gpt-b" in refused.err and "one family" in refused.err
    assert not Campaign.objects.exists()


def test_play_on_stores_every_round_and_keeps_the_first_agreement(models: LocalModels) -> None:
    scene(models, 1, debate=("a", "b"))
    models.script(
        a={"verdict": {"A": ["yes", "yes", "no"], "vote": "yes"}},
        b={"verdict": {"B": ["yes", "no", "no"], "vote": "yes"}},
    )
    status = judge("--policy", "debate", "--rounds", "3", "--play-on").json
    assert status["labels"] == {"1": 1} and status["agreed_in_round"] == {"1": 1} and status["calls"] == 6
    assert [row[3] for row in said("against")] == [1, 0, 0]


def test_labels_say_when_a_filter_or_an_adjudicator_gave_them(models: LocalModels) -> None:
    books = scene(models, 3, debate=("stance", "d2"))
    models.script(
        gemma=[{"verdict": "no", "contains": "number 0"}, {"verdict": "yes"}],
        mistral={"verdict": "no"},
        phi={"verdict": "no"},
        d2=[{"verdict": {"B": ["yes", "yes"]}, "contains": "number 1"}, {"verdict": "stance"}],
        stance={"verdict": "stance"},
        senior={"verdict": "yes"},
    )
    for name in ("gemma", "mistral", "phi", "senior"):
        make_judge(models, name)
    judge("--policy", "debate", "--filter", "gemma,mistral,phi", "--adjudicator", "senior", check=True)
    origins = list(Label.objects.order_by("pair").values_list("origin", flat=True))
    assert origins == ["filter", "debate", "llm-adjudicator"]
    assert rebuild_labels(books) == 0, "they are derived from the judgments alone"


TAKE_NONE = {"anthropic": {"provider": "anthropic"}, "offline": {"provider": "offline", "model": "offline-for"}}


@pytest.mark.parametrize("provider", TAKE_NONE)
def test_a_temperature_is_refused_where_a_debater_takes_none(model_server, instance, provider):
    collection_of(1)
    panel = make_panel(model_server)
    values = dict(TAKE_NONE[provider])
    make_judge(model_server, "deaf", values.pop("model", "deaf"), **values)
    panel.debate = ["a", "deaf"]
    panel.save()
    refused = judge("--policy", "debate", "--temperature", "0.6")
    assert (refused.code, refused.out) == (2, "")
    assert f"(provider {provider})" in refused.err and "--temperature: deaf" in refused.err
    study = call("debate_study", "books", "--run", "order,temperature", "--json")
    assert (study.code, study.out) == (2, "") and "deaf takes no" in study.err
    assert not Campaign.objects.exists(), "nothing of the study was run"


@pytest.mark.parametrize(
    ("provider", "model", "parameters", "taken"),
    [
        ("openai-responses", "o3", {}, False),
        ("openai-responses", "gpt-4.1", {}, True),
        ("openai-responses", "gpt-5.1", {"reasoning_effort": "high", "temperature": "default"}, False),
        ("openai-responses", "gpt-5.1", {"reasoning_effort": "none"}, True),
        ("google", "gemini-2.5-flash", {"thinking": 512, "temperature": 0.5}, True),
        ("offline", "offline-for", {}, False),
    ],
)
def test_a_model_that_thinks_takes_a_temperature_where_its_entry_sets_one(provider, model, parameters, taken):
    known = Judge("j", provider, model, id=1, parameters=parameters)
    assert configurations.takes_temperature(known) == taken
    if not taken:
        with pytest.raises(BadInput, match="takes no temperature"):
            configurations.check_temperature([known], 0.6)


def test_what_is_said_to_debaters_is_refused_where_there_are_none(model_server, instance):
    scene(model_server, 1, debate=())
    for option in ("--agents", "--temperature"):
        refused = judge("--policy", "ensemble", option, "2")
        assert (refused.code, refused.out) == (2, "") and f"{option}: " in refused.err
    assert not Campaign.objects.exists()


def test_the_campaigns_temperature_reaches_the_wire(pair: None, models: LocalModels) -> None:
    judge("--policy", "debate", "--temperature", "0.6")
    assert {request["body"]["temperature"] for request in models.requests()} == {0.6}


@pytest.mark.parametrize(("sdk", "own"), [("openai-compatible", '{"reason": "r", "score": '), ("google", '{"score": ')])
def test_a_graded_judge_leaves_its_score_and_the_probability_of_its_tokens(pair, models, sdk, own):
    values = {"parameters": {"scale": "0-10", "logprobs": 5}, "provider": sdk}
    make_judge(models, "graded", "tens", **values)
    words = [[own, -0.5, []], ["1", math.log(0.8), []], ["0", math.log(0.5), []], ["}", 0.0, []]]
    models.script(tens={"text": f"{own}10}}", "tokens": words})
    assert judge("--policy", "single", "--judges", "graded").json["labels"] == {"1": 1}
    vote = Attempt.objects.get(role="vote")
    assert (vote.score, vote.verdict) == (10, 1)
    assert vote.probabilities == {"10": pytest.approx(0.4)}


@pytest.mark.parametrize(
    ("model", "values", "score", "vote"),
    [
        ("claude", {"provider": "anthropic", "parameters": {"scale": "0-3"}}, 1, ("labelled", 1, 0, None)),
        ("wild", {"parameters": {"scale": "0-3"}}, 4, ("out_of_range", None, None, None)),
        ("declines+refused", {"provider": "openai", "parameters": {"endpoint": "decisions"}}, None,
         ("refused", None, None, None)),
    ],
)  # fmt: skip
def test_a_score_without_probabilities_one_beyond_the_scale_and_a_refused_decision(
    pair: None, models: LocalModels, model: str, values: dict[str, Any], score: int | None, vote: tuple[Any, ...]
) -> None:
    make_judge(models, "graded", model, **values)
    models.script(**({model: {"score": score}} if score is not None else {}))
    status = judge("--policy", "single", "--judges", "graded").json
    assert (status["labels"], status["failed"]) == (({"0": 1}, 0) if vote[0] == "labelled" else ({}, 1))
    votes = Attempt.objects.filter(role="vote").values_list("outcome", "score", "verdict", "probabilities")
    assert set(votes) == {vote}


@pytest.mark.parametrize("sdk", ["openai", "google"])
def test_a_decisions_endpoint_is_a_judge_with_a_probability_for_each_grade(pair, models, sdk):
    values = {"parameters": {"scale": "0-3", "endpoint": "decisions"}, "provider": sdk}
    make_judge(models, "decider", "decider-1", **values)
    models.script(**{"decider-1": {"shares": [0.1, 0.2, 0.6, 0.1]}})
    assert judge("--policy", "single", "--judges", "decider").json["labels"] == {"1": 1}
    vote = Attempt.objects.get(role="vote")
    assert (vote.score, vote.verdict) == (2, 1)
    assert vote.probabilities == {"0": 0.1, "1": 0.2, "2": 0.6, "3": 0.1}
    assert vote.prompt.name == "decision-0-3-answers" and vote.tokens_in > 0


def test_the_trained_reranker_votes_by_its_threshold(pair: None, models: LocalModels) -> None:
    make_judge(models, "ours", "ours-1", provider="rerank-endpoint", parameters={"threshold": 0.7})
    models.script(**{"ours-1": {"shares": [0.65]}})
    assert judge("--policy", "single", "--judges", "ours").json["labels"] == {"0": 1}
    vote = Attempt.objects.get(role="vote")
    assert vote.probabilities == {"yes": 0.65, "no": pytest.approx(0.35)}
    refused = judge("--policy", "debate", "--debaters", "ours,a")
    assert refused.code == 2 and "ours only votes" in refused.err


def test_of_several_generations_the_one_nearest_the_mean_is_kept_and_none_is_a_copy(pair, models):
    parameters = {"scale": "0-10", "generations": 3, "temperature": 0.8}
    make_judge(models, "many", "many-1", parameters=parameters)
    models.script(**{"many-1": [{"score": 9, "times": 1}, {"score": 2, "times": 1}, {"score": 6, "times": 1}]})
    status = judge("--policy", "single", "--judges", "many").json
    assert len(models.requests()) == 3  # three answers were asked for, and none taken from the cache
    scores = sorted(Attempt.objects.filter(role="generation").values_list("score", flat=True))
    assert scores == [2, 6, 9]  # mean 5.67
    vote = Attempt.objects.get(role="vote")
    assert (vote.score, vote.cached, vote.verdict) == (6, True, 1)
    kept = Attempt.objects.get(role="generation", score=6)
    assert vote.reason == kept.reason and vote.cache_key == kept.cache_key
    assert status["calls"] == 3 and status["labels"] == {"1": 1}
