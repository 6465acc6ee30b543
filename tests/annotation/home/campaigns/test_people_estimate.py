"""What the estimate of a start says of people: how many pairs come to them, and their hours; and what policies do."""

import pytest

from annotation.home.campaigns.estimates import DREAM_ESCALATED_SHARE, DREAM_JUDGMENT_SECONDS, estimate_people
from annotation.models import Role
from corpus.models import Collection
from judges.campaigns.configurations import build_configuration
from judges.campaigns.options import JUDGING
from judges.costs import counters
from judges.costs.accounting import format_hours
from judges.models import Campaign
from judges.panels.offline_panel import ensure_offline
from tests.factories import make_collection, make_document, make_member, make_pair, make_query
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


def test_without_an_earlier_campaign_the_papers_share_and_seconds_are_assumed(books: Collection) -> None:
    found = estimate_people(books, build_configuration(policy="debate"), PAIRS, 800)
    assert (found.share_basis, found.share, found.pairs, found.judgments) == ("paper", DREAM_ESCALATED_SHARE, 7, 14)
    assert not found.is_timed and found.hours == pytest.approx(14 * DREAM_JUDGMENT_SECONDS / 3600)
    assert found.model_seconds > 0 and not found.is_model_timed


def test_the_share_is_that_of_earlier_campaigns_with_the_policy_else_of_any(books: Collection) -> None:
    earlier(books, "ensemble", 60, 40)
    found = estimate_people(books, build_configuration(policy="debate"), PAIRS, 800)
    assert (found.share_basis, found.pairs, found.measured_pairs) == ("collection", 80, 100)
    earlier(books, "debate", 90, 10)
    found = estimate_people(books, build_configuration(policy="debate"), PAIRS, 800)
    assert (found.share_basis, found.pairs, found.judgments) == ("policy", 20, 40)


def test_people_alone_judge_all_three_times_and_a_single_judge_leaves_nothing(books: Collection) -> None:
    earlier(books, "ensemble", 60, 40)
    alone = estimate_people(books, build_configuration(policy="human"), PAIRS, 0)
    assert (alone.pairs, alone.judgments) == (PAIRS, 3 * PAIRS)
    assert estimate_people(books, build_configuration(policy="single"), PAIRS, PAIRS).pairs == 0


def test_the_page_of_the_estimate_shows_pairs_and_hours_before_the_start(client, books: Collection) -> None:
    for number in range(40):
        query = make_query(books, f"query {number}")
        make_pair(books, query, make_document(books, f"document {number}"))
    earlier(books, "debate+ensemble", 75, 25)
    client.force_login(make_member(books, "charlie", Role.ADMIN).user)
    response = client.post("/c/books/campaigns/start/", START)
    people = response.context["people"]
    assert response.status_code == 200 and (people.pairs, people.judgments) == (10, 20)
    assert "25.0%" in response.content.decode() and format_hours(people.hours) in response.content.decode()
    assert Campaign.objects.count() == 1, "nothing was started"


def test_a_collection_without_pairs_is_not_said_to_be_judged(client, books: Collection) -> None:
    client.force_login(make_member(books, "charlie", Role.ADMIN).user)
    page = client.post("/c/books/campaigns/start/", START).text
    assert "no pairs yet" in page and 'href="/c/books/import/"' in page and "judged every pair" not in page


@pytest.mark.parametrize(("grades", "is_said"), [(1, False), (3, True)])
def test_a_binary_panel_on_a_graded_scale_says_before_the_start_which_labels_will_come(
    client, books: Collection, grades: int, is_said: bool
) -> None:
    Collection.objects.filter(pk=books.pk).update(grades=grades, relevant_from=min(2, grades))
    make_pair(books)
    client.force_login(make_member(books, "charlie", Role.ADMIN).user)
    page = flat(client.post("/c/books/campaigns/start/", START).content.decode())
    assert ("their labels will be “2 relevant” or “0 not relevant”; only people give other grades." in page) is is_said


def test_each_policy_is_explained_beside_its_button(client, books: Collection) -> None:
    client.force_login(make_member(books, "charlie", Role.ADMIN).user)
    response = client.get("/c/books/campaigns/")
    lines = {choice.data["value"]: line for choice, line, _key in response.context["form"].policies}
    assert set(lines) == set(JUDGING) and all(lines.values())
    text = response.content.decode()
    assert all(f'value="{value}"' in text for value in lines)
