"""What LARA hands to people is debated first, inside its campaign; a setting switches debates for people off."""

import pytest

from annotation.quality.policies import lara_live
from corpus.models import Collection, Item
from judges.campaigns.selectors import campaign_status, debate_of
from judges.costs.collection_budgets import collection_budget
from judges.models import Attempt
from tests.annotation.quality.policies.test_lara import believing_campaign
from tests.engine_parts import _standing_worker, collection_of, judge, make_judge, make_panel, sums_up, worker
from tests.modelserver.fixtures import KEY, KEY_ENV

__all__ = ["_standing_worker", "worker"]


@pytest.fixture
def source(instance, model_server, monkeypatch):
    """Votes of a judge with log-probabilities, and two debaters on the scripted server."""
    monkeypatch.setenv(KEY_ENV, KEY)
    found, _, _ = believing_campaign(20, gold=False)
    found.debaters = [make_judge(model_server, name, "stance").pk for name in ("a", "b")]
    found.save()
    return found


def test_a_pair_that_lara_hands_over_was_debated_first(source, model_server):
    campaign = lara_live.start(source.collection, judge="sure", share=0.2)
    assert lara_live.step(campaign).handed == 1
    item = Item.objects.get(reason=Item.Reason.UNCERTAIN, state="open")
    turns = Attempt.objects.filter(campaign=campaign, pair=item.pair, counts=True)
    assert sorted(turns.values_list("role", "round")) == [
        ("against", 1), ("against", 2), ("for", 1), ("for", 2),
    ]  # fmt: skip
    assert [one.round for one in debate_of(item.pair)] == [1, 1, 2, 2], "it is the debate that people see"
    found = campaign_status(source.collection, campaign)
    assert (found["calls"], found["escalations"], found["agreed_in_round"]) == (4, {"uncertain": 1}, {})
    assert found["cost"] > 0 and sums_up(found)
    assert lara_live.step(campaign).handed == 0
    assert len(model_server.requests()) == 4, "nothing is debated before people have settled what they got"


def test_a_debate_that_was_broken_off_goes_on_where_it_stands(source, model_server):
    campaign = lara_live.start(source.collection, judge="sure", share=0.2)
    waiting = lara_live._to_debate(campaign)
    lara_live.play_debates(campaign, waiting)
    assert len(model_server.requests()) == 4
    assert lara_live.step(campaign).handed == 1
    assert len(model_server.requests()) == 4, "its turns are there"


def test_without_money_the_pair_reaches_people_without_a_debate(source, model_server):
    Collection.objects.filter(pk=source.collection_id).update(budget=1e-9)
    campaign = lara_live.start(source.collection, judge="sure", share=0.2)
    assert lara_live.step(campaign).handed == 1
    assert not model_server.requests() and collection_budget(source.collection).spent == 0
    assert Item.objects.filter(reason=Item.Reason.UNCERTAIN, state="open").count() == 1
    Collection.objects.filter(pk=source.collection_id).update(budget=None)
    campaign = lara_live.start(source.collection, judge="sure", share=0.3, debates=False)
    assert lara_live.step(campaign).handed == 1 and not model_server.requests(), "a setting switches debates off"


def test_a_setting_switches_the_debates_of_other_escalations_off(worker, model_server):
    collection_of(2)
    make_panel(model_server, debate=("stance", "stance"), votes=("yes", "yes", "refused", "no", "no"))
    silent = judge("--policy", "ensemble", "--no-debate-for-people", check=True).json
    assert (silent["escalations"], silent["calls"]) == ({"split": 2}, 2 * 5)
    debated = judge("--policy", "ensemble", check=True).json
    assert debated["campaign"] != silent["campaign"]
    assert Attempt.objects.filter(campaign__number=debated["campaign"], role="for", counts=True).count() == 4
    refused = judge("--policy", "debate", "--no-debate-for-people")
    assert (refused.code, refused.out) == (2, "") and "debates every pair" in refused.err
