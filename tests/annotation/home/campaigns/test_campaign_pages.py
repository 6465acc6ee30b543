"""Campaigns on their page: what a start would ask of people, what policies do, and how a running one goes on."""

import re
import time
from datetime import timedelta

import pytest
from django.conf import settings
from django.test import Client
from django.utils import timezone

from annotation.home.campaigns.estimates import (
    DREAM_ESCALATED_SHARE,
    DREAM_JUDGMENT_SECONDS,
    PeopleEstimate,
    estimate_people,
)
from annotation.models import Role
from corpus.models import Collection
from jobs.notifications import redis_client
from judges.campaigns.configurations import build_configuration
from judges.campaigns.options import JUDGING
from judges.costs import counters
from judges.costs.accounting import format_hours
from judges.engine.limits import limit_keys
from judges.models import Campaign, JudgeVersion
from judges.panels.offline_panel import ensure_offline
from tests.factories import client_of, make_collection, make_document, make_member, make_pair, make_query
from tests.reading import flat

pytestmark = pytest.mark.django_db
PAIRS = 200
START = {"panel": "offline", "policy": "debate+ensemble", "rounds": 2}


@pytest.fixture
def books() -> Collection:
    ensure_offline()
    return make_collection("books", overlap=2)


def earlier(books: Collection, policy: str, labelled: int, escalated: int) -> None:
    campaign = Campaign.objects.create(collection=books, policy=policy, panel="offline", state="finished")
    counters.add(campaign.pk, "labelled:1", labelled)
    counters.add(campaign.pk, "escalated:conflict", escalated)
    counters.add(campaign.pk, "escalated:audit", 30)


def test_the_share_is_the_papers_else_that_of_earlier_campaigns_with_the_policy_or_any(books: Collection) -> None:
    def estimate(policy: str = "debate", calls: int = 800) -> PeopleEstimate:
        return estimate_people(books, build_configuration(policy=policy), PAIRS, calls)

    paper = estimate()
    assert (paper.share_basis, paper.share, paper.pairs, paper.judgments) == ("paper", DREAM_ESCALATED_SHARE, 7, 14)
    assert not paper.is_timed and paper.hours == pytest.approx(14 * DREAM_JUDGMENT_SECONDS / 3600)
    assert paper.model_seconds > 0 and not paper.is_model_timed
    earlier(books, "ensemble", 60, 40)
    any_policy = estimate()
    assert (any_policy.share_basis, any_policy.pairs, any_policy.measured_pairs) == ("collection", 80, 100)
    earlier(books, "debate", 90, 10)
    same_policy = estimate()
    assert (same_policy.share_basis, same_policy.pairs, same_policy.judgments) == ("policy", 20, 40)
    alone = estimate("human", 0)
    assert (alone.pairs, alone.judgments) == (PAIRS, 3 * PAIRS), "people alone judge all three times"
    assert estimate("single", PAIRS).pairs == 0, "a single judge leaves nothing"


@pytest.fixture
def charlie(books: Collection) -> Client:
    return client_of(make_member(books, "charlie", Role.ADMIN))


def test_the_page_of_the_estimate_shows_pairs_and_hours_before_the_start(charlie: Client, books: Collection) -> None:
    page = charlie.post("/c/books/campaigns/start/", START).text
    assert "no pairs yet" in page and 'href="/c/books/import/"' in page and "judged every pair" not in page
    for number in range(40):
        make_pair(books, make_query(books, f"query {number}"), make_document(books, f"document {number}"))
    earlier(books, "debate+ensemble", 75, 25)
    response = charlie.post("/c/books/campaigns/start/", START)
    people = response.context["people"]
    assert response.status_code == 200 and (people.pairs, people.judgments) == (10, 20)
    assert "25.0%" in response.text and format_hours(people.hours) in response.text
    assert Campaign.objects.count() == 1, "nothing was started"
    # A binary panel on a graded scale.
    words = "their labels will be “2 relevant” or “0 not relevant”; only people give other grades."
    assert words not in flat(response.text)
    Collection.objects.filter(pk=books.pk).update(grades=3, relevant_from=2)
    assert words in flat(charlie.post("/c/books/campaigns/start/", START).text)


def test_each_policy_is_explained_beside_its_button(charlie: Client) -> None:
    response = charlie.get("/c/books/campaigns/")
    lines = {choice.data["value"]: line for choice, line, _key in response.context["form"].policies}
    assert set(lines) == set(JUDGING) and all(lines.values())
    assert all(f'value="{value}"' in response.text for value in lines)


def test_a_running_campaign_shows_speed_time_left_and_an_open_circuit(client) -> None:
    books = make_collection("books")
    judge = JudgeVersion.objects.create(name="j", provider="openai", model="m", api_key_env="OPENAI_API_KEY")
    campaign = Campaign.objects.create(
        collection=books,
        policy="single",
        panel="main",
        voters=[judge.pk],
        created_at=timezone.now() - timedelta(hours=1),
    )
    counters.add(campaign.pk, "pairs", 180)
    counters.add(campaign.pk, "labelled:1", 60)
    client.force_login(make_member(books, "charlie", Role.ADMIN).user)
    state_key = limit_keys(settings.PREFIX, ("openai", "", "OPENAI_API_KEY"))[0]
    until = int(time.time() * 1000) + 30_000
    state = {"opened": 2, "errors": 25, "open_until": until, "said": "ConnectError: refused", "failing_since": 9000}
    redis_client().hset(state_key, mapping=state)
    try:
        response = client.get("/c/books/campaigns/")
        (listed,) = response.context["listed_campaigns"]
        (account,) = listed.activity.accounts
    finally:
        redis_client().delete(state_key)
    assert listed.activity.pairs_per_minute == pytest.approx(1, rel=0.05)
    assert listed.activity.seconds_left == pytest.approx(7200, rel=0.05)
    state = account.state
    assert account.judge_ids == (judge.pk,)
    assert state.is_open and (state.errors, state.failing_since) == (25, 9.0) and 20 <= state.open_seconds <= 30
    assert "openai OPENAI_API_KEY" in response.content.decode()
    (listed,) = client.get("/c/books/campaigns/").context["listed_campaigns"]
    assert not listed.activity.accounts[0].state.is_open, "it answers again"


def test_calls_that_judge_no_pairs_stand_apart_and_never_as_0_of_0_pairs(client) -> None:
    books = make_collection("books")
    judging = Campaign.objects.create(collection=books, policy="debate", panel="main", state="finished")
    counters.add(judging.pk, "pairs", 7)
    past, running = (
        Campaign.objects.create(collection=books, kind="costs", policy="retrieval", panel=panel, state=state)
        for panel, state in (("run hyde", "finished"), ("answers 4", "running"))
    )
    counters.add(past.pk, "calls", 48)
    client.force_login(make_member(books, "charlie", Role.ADMIN).user)
    response = client.get("/c/books/campaigns/")
    page = flat(response.content.decode())
    assert [row.campaign.pk for row in response.context["listed_campaigns"]] == [running.pk, judging.pk]
    assert [row.campaign.pk for row in response.context["cost_centres"]] == [past.pk]
    assert "0 of 7 pairs done" in page and "0 of 0 pairs" not in page
    assert re.search(r'<th scope="row"[^>]*>run hyde</th>.*?data-label="Calls">48</td>', page)
    assert f'href="/c/books/campaigns/{past.number}/ledger/"' in page
    assert f'id="campaign-{past.number}"' in page, "its ledger leads back here"
