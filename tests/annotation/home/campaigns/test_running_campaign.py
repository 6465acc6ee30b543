"""A running campaign on its page: speed, time left, and the state of each account."""

import re
import time
from datetime import timedelta

import pytest
from django.conf import settings
from django.utils import timezone

from annotation.models import Role
from jobs.notifications import redis_client
from judges.costs import counters
from judges.engine.limits import limit_keys
from judges.models import Campaign, JudgeVersion
from tests.factories import make_collection, make_member
from tests.reading import flat

pytestmark = pytest.mark.django_db


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
