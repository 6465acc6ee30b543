"""The page of the panel: what an admin sees of the candidates, and making five of them the panel."""

import csv
import re
from io import StringIO

import pytest

from annotation.models import Role
from annotation.models.self_checks import SelfCheck
from annotation.quality.panels.applying import make_panel
from corpus.errors import BadInput
from corpus.models import Assessor
from judges.models import JudgeVersion, Panel
from judges.panels.offline_panel import ensure_offline
from tests.factories import make_collection, make_member, make_user
from tests.kept_scene import built_once
from tests.panel_scene import HONEST, PAIRS, add_pairs, answers, grade, refer, vote

pytestmark = pytest.mark.django_db
FIVE = HONEST[:5]


@pytest.fixture
@built_once
def books():
    """Seven honest judges, one by coin, a copy of j0 made elsewhere, and the reference."""
    books = make_collection("books", grades=3, relevant_from=2)
    add_pairs(books, "q1", [f"d{n}" for n in range(PAIRS)])
    votes, truth = answers(1)
    vote(books, votes)
    refer(books, truth)
    grade(books, "gpt", "judge-import", [3 * int(verdict) for verdict in votes[0]])
    return books


@pytest.fixture
def charlie(books, client):
    """An admin of the collection, signed in."""
    member = make_member(books, "charlie", Role.ADMIN)
    client.force_login(member.user)
    return member.user


def page(client, query=""):
    response = client.get(f"/c/books/panel/{query}")
    assert response.status_code == 200
    return response.text


def row(text: str, name: str) -> str:
    """The candidate's row of the table."""
    table = text[text.index('id="candidates-h"') :]
    return next(part for part in table.split("<tr>") if f'class="full"><span class="name">{name}<' in part)


def test_the_page_says_who_is_proposed_who_is_below_the_floor_and_who_is_a_copy(client, books, charlie):
    text = page(client)
    assert "j0 and gpt are copies: they count as one vote, not 2." in text
    assert "below the floor" in row(text, "coin") and "than chance" in row(text, "coin")
    assert "recommended" not in row(text, "coin")
    assert "of gpt" in row(text, "j0") and "of j0" in row(text, "gpt")
    assert "imported; no judge" in row(text, "gpt")
    assert text.count("recommended</span>") == 5
    sets = text[text.index('id="sets-1"') : text.index('id="candidates-h"')]
    assert "coin" not in sets and "gpt" not in sets
    assert sets.count("Use as panel<") == 10, "five of each order"


def test_a_cell_of_the_matrix_opens_the_pairs_on_which_the_two_differ(
    client, books, charlie, django_assert_max_num_queries
):
    page(client)
    with django_assert_max_num_queries(18):
        text = page(client)
    cell = re.search(r'href="(/c/books/agreement/two/\?a=j1&amp;b=j2&amp;cell=disagree%3A2)"', text)
    assert cell and "error correlation" in text
    opened = client.get(cell[1].replace("&amp;", "&"))
    assert opened.status_code == 200 and "they differ" in opened.content.decode()

    rows = list(csv.reader(StringIO(client.get("/c/books/panel/?chart=kappas&as=csv").content.decode())))
    assert len(rows) == 10 and rows[0][1:] == [line[0] for line in rows[1:]]
    picture = client.get("/c/books/panel/?chart=candidates&as=svg")
    assert picture["Content-Type"].startswith("image/svg+xml")
    assert client.get("/c/books/panel/?chart=nothing").status_code == 404


def test_self_checks_stand_beside_the_candidates_and_before_the_question(client, books, charlie):
    judge = JudgeVersion.objects.get(name="j1")
    SelfCheck.objects.create(collection=books, judge=judge, passes=False, findings={"problems": ["2 of 8 in order"]})
    text = page(client)
    assert "2 of 8 in order" in row(text, "j1") and "not checked yet" in row(text, "j2")
    assert "not checked yet" not in row(text, "gpt"), "nobody of this name is configured"
    question = client.get("/c/books/panel/use/", {"judge": FIVE}).content.decode()
    question = " ".join(question.split())
    assert "j1: failed on" in question and "j2: not checked yet" in question


def test_the_floor_and_the_candidates_stand_in_the_address_and_without_gold_the_page_says_by_what_it_measures(
    client, books, charlie
):
    text = page(client, "?floor=0.99")
    assert "Floor: 0.990 (as set)" in text and "0 of 9 candidates" in text
    text = page(client, "?" + "&".join(f"c={name}" for name in FIVE))
    assert "same 120 pairs" in text and "of 1 set of 5" in text
    assert "9 candidates" in page(client, "?c=nobody&floor=x"), "nonsense falls back"

    text = page(client, "?c=j0&c=j1")
    assert "5 judges, but there are only 2 candidates" in text
    Assessor.objects.filter(kind="reference").update(kind="human-import")
    text = page(client)
    assert "majority of the others" in text
    assert "coin" not in text[text.index('id="sets-1"') : text.index('id="candidates-h"')]


# Making it the panel


def test_an_admin_makes_it_the_panel_of_the_collection_and_of_nothing_else(client, books, charlie):
    question = " ".join(client.get("/c/books/panel/use/", {"judge": FIVE}).text.split())
    assert "books:chosen" in question
    assert "offline-answers, offline-bm25" in question, "who is not on it any more"
    assert not Panel.objects.filter(name="books:chosen").exists(), "a GET changes nothing"
    Panel.objects.filter(pk=ensure_offline().pk).update(majority=4, early_stop=True)
    response = client.post("/c/books/panel/use/", {"judge": FIVE, "default": "1"}, follow=True)
    assert "j0, j1, j2, j3, j4" in response.content.decode()
    made = Panel.objects.get(name="books:chosen")
    assert (made.ensemble, made.debate) == (FIVE, ["offline-for", "offline-against"])
    assert (made.majority, made.early_stop, made.is_default) == (4, True, False)
    assert Panel.objects.get(is_default=True).name == "offline", "the site's default is the owners' to change"
    form = client.get("/c/books/campaigns/").content.decode()
    assert re.search(r'<option value="books:chosen" selected>books:chosen \(2 debaters, 5 judges\)', form)
    Panel.objects.create(name="solo", ensemble=FIVE[:1])
    assert "solo (1 judge)<" in client.get("/c/books/campaigns/").content.decode(), "it has no debaters"


def test_an_owner_may_make_it_the_default_and_a_second_choice_replaces_the_first(client, books):
    client.force_login(make_user("owner", is_owner=True))
    client.post("/c/books/panel/use/", {"judge": FIVE})
    assert not Panel.objects.get(name="books:chosen").is_default
    client.post("/c/books/panel/use/", {"judge": HONEST[2:], "default": "1"})
    made = Panel.objects.get(name="books:chosen")
    assert made.is_default and made.ensemble == HONEST[2:]
    assert Panel.objects.filter(is_default=True).count() == 1
    text = client.get("/c/books/panel/use/?" + "&".join(f"judge={name}" for name in FIVE)).content.decode()
    assert "j0, j1</dd>" in text and "j5, j6</dd>" in text, "who joins and who leaves"


def test_the_panel_of_another_collection_is_not_offered_here_unless_it_is_the_default(client, books, charlie):
    films = make_collection("films")
    make_panel(collection=films, judges=FIVE)
    assert "films" not in client.get("/c/books/campaigns/").content.decode()
    asked = {"panel": "films:chosen", "policy": "ensemble", "rounds": 2}
    assert client.post("/c/books/campaigns/start/", asked).status_code == 422
    make_panel(collection=films, judges=FIVE, default=True)
    assert "films:chosen" in client.get("/c/books/campaigns/").content.decode()


def test_only_five_different_configured_judges_are_a_panel(client, books, charlie):
    for judges in (FIVE[:4], [*FIVE[:4], "j0"], [*FIVE[:4], "gpt"], []):
        with pytest.raises(BadInput):
            make_panel(collection=books, judges=judges)
        assert client.get("/c/books/panel/use/", {"judge": judges}).status_code == 404
        response = client.post("/c/books/panel/use/", {"judge": judges}, follow=True)
        assert "Nothing was changed" in response.content.decode()
    assert not Panel.objects.filter(name="books:chosen").exists()
