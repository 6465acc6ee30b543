"""What the estimate of a start says of people: how many pairs come to them, and their hours; and what policies do."""

import pytest
from django.test import Client

from annotation.home.campaigns.estimates import (
    DREAM_ESCALATED_SHARE,
    DREAM_JUDGMENT_SECONDS,
    PeopleEstimate,
    estimate_people,
)
from annotation.models import Role
from corpus.models import Collection
from judges.campaigns.configurations import build_configuration
from judges.campaigns.options import JUDGING
from judges.costs import counters
from judges.costs.accounting import format_hours
from judges.models import Campaign
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
