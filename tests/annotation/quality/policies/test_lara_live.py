"""LARA as a live policy: batches go to people, their labels alone are learned from, the rest is labelled at the end."""

import numpy as np
import pytest
from django.db.models.functions import Now

from annotation.models import Membership, Role
from annotation.quality.policies import lara, lara_live
from annotation.tasks import go_on_with_lara
from corpus.errors import BadInput
from corpus.models import Collection, Item, Label
from jobs.background import is_unfinished
from jobs.models import BackgroundJob
from judges.campaigns import selectors
from judges.models import Audit, Campaign, Work
from tests.annotation.quality.policies.test_lara import believing_campaign
from tests.called import call
from tests.engine_parts import sums_up
from tests.factories import make_member
from tests.queue_scene import claim, submit

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _no_debates(monkeypatch):
    """They are played on a connection of their own, which sees no row of a test's transaction: test_lara_debates."""
    monkeypatch.setattr(lara_live, "play_debates", lambda campaign, work: None)


def people_answer(truth: dict[int, int], member: Membership) -> int:
    """The member judges everything that waits, as the queue lends it; how many."""
    done, lease = 0, claim(member)
    while lease:
        lease = submit(member, lease, truth[lease.item.pair_id])
        done += 1
    return done


def command(*options: object) -> dict:
    return call("lara", "books", "--judge", "sure", *options, "--json").json


def test_votes_that_were_stored_without_the_answer_not_given_are_of_use():
    believing_campaign(40, gold=False, said_alone=True)
    status = command("--share", 0.25)
    assert (status["pairs"], status["escalations"], status["running"]) == (40, {"uncertain": 1}, 39)
    standing = lara_live.read_progress(Campaign.objects.get(number=status["campaign"]))
    assert np.allclose(standing.beliefs.sum(axis=1), 1), "the one that is missing has at most the rest"


def test_the_live_loop_hands_over_the_same_pairs_and_ends_with_the_same_labels_as_the_replay():
    source, beliefs, gold = believing_campaign(40, gold=False)
    books = source.collection
    pairs = list(books.pair_set.order_by("pk").values_list("pk", flat=True))
    truth = dict(zip(pairs, map(int, gold), strict=True))
    alice = make_member(books, "alice")
    status = command("--share", 0.25)
    campaign = Campaign.objects.get(number=status["campaign"])
    assert (status["pairs"], status["escalations"], status["running"]) == (40, {"uncertain": 1}, 39)
    assert sums_up(status)
    for _ in range(10):
        waiting = Item.objects.filter(reason=Item.Reason.UNCERTAIN, state="open").count()
        assert waiting == 1, "a hundredth of the pairs at a time"
        lara_live.wake()
        assert not is_unfinished(lara_live.GO_ON, campaign.pk), "people have not settled what they got"
        assert people_answer(truth, alice) == 1
        lara_live.wake()
        go_on_with_lara()

    wanted = lara.run_shares(beliefs, lambda places: gold[places], [0.25])[0]
    handed = Item.objects.filter(reason=Item.Reason.UNCERTAIN).order_by("pk").values_list("pair", flat=True)
    assert [pairs.index(pair) for pair in handed] == wanted.people_pairs.tolist()
    labels = dict(Label.objects.filter(pair__in=pairs).values_list("pair", "grade"))
    assert [labels[pair] for pair in pairs] == wanted.label.tolist()
    origins = Label.objects.filter(pair__in=pairs).values_list("origin", flat=True)
    assert sorted(set(origins)) == ["lara", "people"] and list(origins).count("people") == 10
    after = selectors.campaign_status(books, campaign)
    assert (after["state"], after["labelled"], after["settled"], after["open"]) == ("finished", 30, 10, 0)
    assert sums_up(after)
    assert command("--share", 0.25)["campaign"] == campaign.number, "the same command finds it and changes nothing"
    assert Work.objects.filter(campaign=campaign, state="labelled").count() == 30


def test_labels_of_pairs_that_this_campaign_did_not_hand_over_reach_no_fit():
    source, _, gold = believing_campaign(30, gold=False)
    pairs = list(source.collection.pair_set.order_by("pk").values_list("pk", flat=True))
    for pair, known in zip(pairs, gold, strict=True):
        Label.objects.create(pair_id=pair, grade=int(known), origin="people")
    campaign = lara_live.start(source.collection, judge="sure", share=0.5)
    now = lara_live.read_progress(campaign)
    assert len(now.people_pairs) == 0 == len(now.labels)
    lara_live.step(campaign)
    now = lara_live.read_progress(campaign)
    assert len(now.people_pairs) == 1 and now.labels.tolist() == [int(gold[now.people_pairs[0]])]


def test_nothing_is_handed_out_before_the_last_batch_is_settled_or_while_it_is_paused():
    source, _, _ = believing_campaign(20, gold=False)
    campaign = lara_live.start(source.collection, judge="sure", share=0.2)
    assert lara_live.step(campaign).handed == 1
    again = lara_live.step(campaign)
    assert (again.handed, again.waiting, again.people_pairs, again.budget) == (0, 1, 1, 4)
    Item.objects.filter(reason=Item.Reason.UNCERTAIN).update(state="settled")
    Label.objects.create(pair=Item.objects.get(reason=Item.Reason.UNCERTAIN).pair, grade=1, origin="people")
    Campaign.objects.filter(pk=campaign.pk).update(state="paused")
    assert lara_live.step(campaign).handed == 0
    lara_live.wake()
    assert not BackgroundJob.objects.exists()
    Campaign.objects.filter(pk=campaign.pk).update(state="running")
    job = BackgroundJob.objects.create(kind=lara_live.GO_ON, subject=campaign.pk, state="failed", ended_at=Now())
    lara_live.wake()
    assert not is_unfinished(lara_live.GO_ON, campaign.pk), "a step that failed rests"
    BackgroundJob.objects.filter(pk=job.pk).update(ended_at=Now() - lara_live.RETRY_AFTER)
    lara_live.wake()
    assert is_unfinished(lara_live.GO_ON, campaign.pk)
    assert lara_live.step(campaign).handed == 1


def test_labels_of_lara_are_audited_like_those_of_every_policy():
    source, _, gold = believing_campaign(12, gold=False)
    books = source.collection
    Collection.objects.filter(pk=books.pk).update(audit=0.02)
    pairs = list(books.pair_set.order_by("pk").values_list("pk", flat=True))
    alice = make_member(books, "alice")
    campaign = lara_live.start(books, judge="sure", share=0.1)
    lara_live.step(campaign)
    people_answer(dict(zip(pairs, map(int, gold), strict=True)), alice)
    assert lara_live.step(campaign).labelled == 11
    routes = set(Audit.objects.filter(campaign=campaign).values_list("stratum", flat=True))
    assert routes <= {"r0.m1.y", "r0.m1.n", "r0.m-1.y", "r0.m-1.n"} and Audit.objects.count() == 11


def test_a_judge_without_log_probabilities_is_refused():
    source, _, _ = believing_campaign(10, without=3)
    for judge, share, why in (
        ("sure", 0.5, r"1 of 10 pairs of campaign \d+ have no P\(yes\) and P\(no\)"),
        ("mute", 0.5, "10 of 10 pairs"),
        ("nobody", 0.5, "has voted in no campaign of books"),
        ("sure", 0.0, "Enter a share above 0"),
    ):
        with pytest.raises(BadInput, match=why):
            lara_live.start(source.collection, judge=judge, share=share)
    assert not Campaign.objects.filter(policy="lara").exists()


def test_the_comparison_and_the_admins_pages_show_a_campaign_of_lara(client):
    source, _, _ = believing_campaign(10)
    campaign = lara_live.start(source.collection, judge="sure", share=0.5)
    document = call("evaluate_policies", "books", "--json").json
    assert (document["campaign"], document["pairs"]) == (source.number, 10)
    lara_live.step(campaign)
    client.force_login(make_member(source.collection, "charlie", Role.ADMIN).user)
    for address in ("", "campaigns/", "quality/", f"pairs/?campaign={campaign.number}&state=escalated"):
        assert client.get(f"/c/books/{address}").status_code == 200, address
    waiting = client.get(f"/c/books/pairs/?campaign={campaign.number}&reason=uncertain").content.decode()
    assert "1 pair" in waiting
    assert f"campaign {source.number} (ensemble)" in client.get("/c/books/policies/").content.decode()
