"""What the summary tells of judges: lost answers with what helps, and how long the calls of a pair took."""

from datetime import UTC, datetime, timedelta
from io import StringIO

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from django.utils.html import escape

from annotation.models import Role
from corpus.models import Collection, Pair
from judges.campaigns.judge_reports import judge_reports
from judges.campaigns.selectors import latency_medians, latency_of
from judges.models import Attempt, Campaign, JudgeVersion
from tests.engine_parts import collection_of, judge, scene
from tests.evidence import make_attempt, make_judge
from tests.factories import make_member
from tests.modelserver.fixtures import LocalModels


def test_a_judge_whose_answers_are_lost_is_said_with_the_key_that_helps(models: LocalModels, client: Client) -> None:
    scene(models, 6, debate=(), votes=("yes", "truncated", "refused", "garbage", "yes2"))
    models.script({"yes2": {"verdict": "yes"}})
    done = judge(check=True)
    reports = {report["judge"]: report for report in done.json["judges"]}
    assert (reports["v1"]["calls"], reports["v1"]["usable"]) == (6, 6)
    assert (reports["v2"]["truncated"], reports["v2"]["usable"]) == (6, 0)
    assert (reports["v3"]["refused"], reports["v3"]["usable"]) == (6, 0)
    assert (reports["v4"]["unusable"], reports["v4"]["calls"]) == (12, 12), "each was asked for once more"
    for words in (
        "v2: 6 calls, 0 usable; 6 truncated: raise max_output_tokens, now 512; for answers that repeat themselves, "
        "take another model or temperature",
        "v3: 6 calls, 0 usable; 6 refused",
        "v4: 12 calls, 0 usable; 12 not in the form that was asked for",
    ):
        assert any(note.startswith(words) for note in done.json["judge_notes"]), done.json["judge_notes"]
    assert not any(note.startswith(("v1", "v5")) for note in done.json["judge_notes"])
    client.force_login(make_member(Collection.objects.get(), "alice", Role.ADMIN).user)
    page = client.get(reverse("campaigns", args=["books"])).text
    assert all(escape(note) in page for note in done.json["judge_notes"])


def test_a_campaign_without_losses_says_nothing(models: LocalModels) -> None:
    scene(models, 2, debate=(), votes=("yes",))
    done = judge("--policy", "single", check=True)
    assert done.json["judge_notes"] == [] and done.json["judges"][0]["usable"] == 2


def test_a_debate_with_truncated_answers_counts_them_in_its_summary_and_status(models: LocalModels) -> None:
    scene(models, 3, debate=("truncated", "yes"), votes=("yes",))
    done = judge("--policy", "debate", check=True)
    assert done.json["escalations"] == {"unparsed": 3} and done.json["calls_failed"] == 0
    out = StringIO()
    call_command("status", "books", stdout=out)
    assert "unparsed 3 (3 answers truncated at max_output_tokens)" in out.getvalue()
    assert "0 failed, 3 truncated, 0 from the cache" in out.getvalue()
    # A judge with a chain of reasoning has a limit of its own, which the note names.
    JudgeVersion.objects.update(parameters={"prompt": "score-chain"})
    (reports,) = judge_reports(Collection.objects.get().campaigns.values_list("pk", flat=True)).values()
    assert {report.max_output_tokens for report in reports} == {2048}


NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def campaign(db: None) -> Campaign:
    """On five pairs."""
    return Campaign.objects.create(collection=collection_of(5), policy="debate", panel="main")


def sent(campaign: Campaign, pair: Pair, after: float, milliseconds: int, **values: object) -> None:
    judge = JudgeVersion.objects.filter(name="Charlie").first() or make_judge("Charlie")
    place = Attempt.objects.filter(pair=pair).count()
    about = {"place": place, "number": place, "outcome": "error", "counts": False, "milliseconds": milliseconds}
    make_attempt(campaign, pair, judge, None, started_at=NOON + timedelta(seconds=after), **about, **values)


def test_the_time_of_a_pair_is_summed_and_by_the_clock_and_medians_are_over_pairs(campaign: Campaign) -> None:
    assert latency_medians(campaign) is None
    for place, pair in enumerate(campaign.collection.pair_set.order_by("pk")[:3]):
        sent(campaign, pair, 0, 100 * (place + 1))
        sent(campaign, pair, 1, 0)
    assert latency_medians(campaign) == {"summed": 200, "wall": 1000}
    pair = campaign.collection.pair_set.last()  # the first three have calls by now
    assert pair is not None and latency_of(pair, campaign) is None
    sent(campaign, pair, 0.0, 1000)
    sent(campaign, pair, 0.5, 1000)
    sent(campaign, pair, 9.0, 5, cached=True)
    assert latency_of(pair, campaign) == {"summed": 2000, "wall": 1500}
