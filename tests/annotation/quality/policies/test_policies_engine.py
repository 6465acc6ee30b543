"""Through the engine: a stopped route hands further pairs to people; the guard; what generations cost in a replay."""

import json
from math import log

import pytest

from config.celery import app
from corpus.models import Collection, Item
from judges.costs import counters
from judges.engine.notifications import DRAIN
from judges.models import Attempt, Audit, Campaign
from tests.called import call
from tests.engine_parts import _standing_worker, collection_of, judge, make_judge, make_panel, pairs_of, sums_up, worker
from tests.evidence import make_assessor, make_judgment
from tests.instances import until

__all__ = ["_standing_worker", "worker"]


def find_wrong(campaign: Campaign) -> None:
    """Two people settle every drawn pair, and say other than the policy."""
    people = [make_assessor(campaign.collection, f"auditor-{place}") for place in range(2)]
    for audit in Audit.objects.filter(campaign=campaign).select_related("item", "pair"):
        for person in people:
            make_judgment(audit.pair, person, 1 - audit.label, item=audit.item)
        Item.objects.filter(pk=audit.item_id).update(state="settled", taken=2, done=2)
        counters.add(campaign.pk, "audited", 1)


def nobody_drains() -> bool:
    """No process of the worker is at a campaign: whoever begins next looks at what was audited."""
    working = app.control.inspect(timeout=10, limit=1).active()
    return bool(working) and not any(task["name"] == DRAIN for tasks in working.values() for task in tasks)


def test_a_route_that_failed_its_audit_hands_further_pairs_to_people(worker, model_server):
    collection = collection_of(6)
    Collection.objects.filter(pk=collection.pk).update(audit=0.5)
    make_panel(model_server, votes=("yes", "yes", "yes", "yes", "no"))
    first = judge("--limit", 4, check=True).json
    assert (first["labelled"], first["audits"]) == (4, 4)
    campaign = Campaign.objects.get(number=first["campaign"])
    until(nobody_drains, "the end of the first run's drains, which know of no audit")
    find_wrong(campaign)

    status = judge(check=True).json
    assert status["campaign"] == campaign.number and sums_up(status)
    assert status["escalations"] == {"audit": 4, "stopped": 2}
    assert (status["labelled"], status["open"]) == (4, 2)
    items = Item.objects.filter(reason="stopped")
    assert items.count() == 2 and not items.filter(pair__labels__isnull=False).exists()
    assert counters.read(campaign.pk)["stopped:r1.m3.y"] >= 1, "each worker that looked may say so"
    assert Item.objects.filter(reason="audit").count() == 4, "labels that stand wait for an admin's word"


def script(*quotes: str) -> dict[str, object]:
    """Agent B comes over to "yes" at once, with these sentences."""
    answer = {"reference": list(quotes), "reason": "I was persuaded.", "response": "yes"}
    return {"a": {"verdict": "yes"}, "b": {"text": json.dumps(answer)}}


@pytest.mark.parametrize(("quote", "outcome"), [("Part of books.", "labelled"), ("Nowhere.", "escalated")])
def test_with_the_guard_an_agreement_without_new_evidence_is_a_disagreement(worker, model_server, quote, outcome):
    collection_of(2)
    make_panel(model_server, debate=("a", "b"))
    model_server.script(script(quote))
    assert judge("--policy", "debate", check=True).json["labelled"] == 2, "without the guard it agrees"
    assert judge("--policy", "debate", "--guard", check=True).json[outcome] == 2
    document = call("evaluate_policies", "books", "--json", "--guard").json
    found = {one["name"]: one for one in document["policies"]}["debate, 2 rounds"]
    assert found[outcome] == 2, "the replay says the same"
    assert found["collapsed"] == 0, "with the guard no agreement rests on a collapse"


@pytest.mark.slow
def test_a_vote_of_several_generations_costs_them_all_and_counts_once(worker, model_server):
    collection_of(2)
    make_panel(model_server, votes=("v",) * 5, parameters={"scale": "0-10", "generations": 3, "temperature": 1.0})
    model_server.script({"*": {"verdict": "yes", "score": 9}})
    judge("--policy", "ensemble", check=True)
    assert Attempt.objects.filter(role="generation").count() == 2 * 5 * 3
    found = {one["name"]: one for one in call("evaluate_policies", "books", "--json").json["policies"]}
    assert (found["ensemble, 5 of 5"]["labelled"], found["ensemble, 5 of 5"]["calls"]) == (2, 30)
    assert found["single: v1"]["calls"] == 6 and not found["debate, 1 round"]["available"]


def sure(number: int, yes: float) -> dict[str, object]:
    """An answer with the log-probabilities of "yes" and "no" in the verdict's place."""
    verdict = "yes" if yes >= 0.5 else "no"
    shares = {"yes": log(yes), "no": log(0.95 - yes)}
    verdict_token = [verdict, shares[verdict], [[word, share] for word, share in shares.items()]]
    return {
        "contains": f"mapping number {number} ",
        "text": f'{{"response": "{verdict}"}}',
        "tokens": [['{"response": "', -0.1, []], verdict_token, ['"}', 0.0, []]],
    }


def test_lara_begins_on_the_log_probabilities_that_a_judge_really_gave(worker, model_server):
    collection = collection_of(4)
    make_panel(model_server)
    make_judge(model_server, "sure", parameters={"logprobs": True})
    model_server.script(sure=[sure(number, yes) for number, yes in enumerate((0.9, 0.52, 0.1, 0.3))])
    judge("--policy", "single", "--judges", "sure", check=True)
    status = call("lara", "books", "--judge", "sure", "--share", 0.25, "--json").json
    assert (status["policy"], status["escalations"], status["running"]) == ("lara", {"uncertain": 1}, 3)
    assert Item.objects.get(reason="uncertain").pair_id == pairs_of(collection)[1].pk, (
        "0.52 / 0.95 is nearest to a half"
    )
    assert call("lara", "books", "--judge", "v1").code == 2, "it has voted in no campaign"
    judge("--policy", "single", "--judges", "v1", check=True)
    refused = call("lara", "books", "--judge", "v1")
    assert refused.code == 2 and refused.err.startswith("--judge: 4 of 4 pairs")


def test_lara_takes_votes_whose_opposite_is_not_among_the_alternatives(worker, model_server):
    collection_of(2)
    make_panel(model_server)
    make_judge(model_server, "sure", parameters={"logprobs": True})
    seen = [["yes", log(0.9)], ["maybe", log(0.06)]]
    words = [['{"response": "', -0.1, []], ["yes", log(0.9), seen], ['"}', 0.0, []]]
    model_server.script(sure={"text": '{"response": "yes"}', "tokens": words})
    judge("--policy", "single", "--judges", "sure", check=True)
    assert [one.probabilities for one in Attempt.objects.filter(role="vote")] == [
        {"yes": pytest.approx(0.9), "no": pytest.approx(0.04)}
    ] * 2
    assert call("lara", "books", "--judge", "sure", "--share", 0.5, "--json").json["escalations"] == {"uncertain": 1}


def test_human_asks_no_judge_and_hands_every_pair_to_three(worker, model_server):
    collection_of(3)
    make_panel(model_server)
    status = judge("--policy", "human", check=True).json
    assert (status["policy"], status["escalations"], status["calls"]) == ("human", {"policy": 3}, 0)
    assert status["state"] == "finished" and sums_up(status) and model_server.requests() == []
    assert set(Item.objects.values_list("reason", "overlap")) == {("policy", 3)}
    refused = judge("--policy", "lara")
    assert refused.code == 2 and refused.err.startswith("--policy: ")
