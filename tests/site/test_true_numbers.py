"""Numbers that do not mislead: walks over templates, charts, pages and strings."""

import re
from html import unescape
from pathlib import Path

import pytest
from django.conf import settings

from annotation.agreement.measures import Statistic
from annotation.models import Role
from annotation.templatetags.reports import few
from corpus.models import Pair
from judges.domain.audits import Route
from judges.models import Campaign, Work
from tests.evidence import make_assessor, make_judgment
from tests.factories import client_of, make_collection, make_member
from tests.judged_books import make_books
from tests.reading import page_text
from tests.site.test_permissions import World, routes

pytestmark = pytest.mark.django_db

TEMPLATES = sorted((Path(settings.BASE_DIR) / "templates").rglob("*.html"))
RATE = re.compile(r"([a-z_][\w.]*)\.value\|(?:percent|tenths|places:\d)")
# Values that are no estimates, and those whose cell qualifies them by another one of the same pairs.
NO_ESTIMATES = {
    "reason": "the limit that is not reached",
    "page.chosen.measures.floor": "the limit that is set",
    "cell.percent": "few pairs are said of cell.shown",
    "cell.pair.percent": "few pairs are said of cell.pair.kappa",
}


def test_every_rate_in_a_template_stands_beside_its_interval() -> None:
    bare, seen = [], 0
    for path in TEMPLATES:
        lines = path.read_text().splitlines()
        for number, line in enumerate(lines):
            for name in RATE.findall(line):
                seen += 1
                beside = "\n".join(lines[max(0, number - 4) : number + 7])
                is_qualified = re.search(rf"{re.escape(name)}(?:\|(?:few|span|percent_span)\b|\.low\b)", beside)
                if name not in NO_ESTIMATES and not is_qualified:
                    bare.append(f"{path.name}:{number + 1} {name}")
    assert seen > 40, "the walk finds them"
    assert bare == []
    # The one part that leaves empty pictures out draws them all.
    assert [path.name for path in TEMPLATES if ".svg|safe" in path.read_text()] == ["_chart.html"]


@pytest.mark.parametrize(
    ("statistic", "form", "words"),
    [
        (Statistic(0.5, 0.2, 0.8, 29, None), "percent", "20.0% to 80.0%, n = 29"),
        (Statistic(0.5, 0.2, 0.8, 29, None), "", "0.20 to 0.80, n = 29"),
        (Statistic(0.5, None, None, 12, None), "", "n = 12, too few to say"),
        (0, "", "n = 0, too few to say"),
        (Statistic(0.5, None, None, 30, None), "", ""),
        (Statistic(None, None, None, 3, "why"), "", ""),
        (30, "", ""),
        (None, "", ""),
    ],
)
def test_a_figure_of_fewer_than_thirty_values_is_qualified(statistic, form: str, words: str) -> None:
    assert re.sub("<[^>]*>", "", few(statistic, form)).strip() == words


# Pages of figures, all from the 15 pairs of a collection that five judges and two people judged.
FIGURES = ("quality/", "quality/over-time/", "members/", "people/{}/", "people/pay/", "panel/", "policies/")
FIGURES += ("quality/label-errors/",)
FIGURE = re.compile(r"^[−-]?(?:\d{1,3}(?:\.\d)?%|[01]\.\d{2,3})(?!\d)")


def test_no_page_of_few_pairs_has_a_figure_without_its_interval() -> None:
    books = make_books(queries=5)
    alice, bob = make_member(books, "alice"), make_member(books, "bob")
    gold = make_assessor(books, "gold", "reference")
    for place, pair in enumerate(Pair.objects.filter(collection=books).order_by("pk")):
        make_judgment(pair, alice.assessor, int(place % 3 == 0))
        make_judgment(pair, bob.assessor, int(place % 4 == 0))
        make_judgment(pair, gold, 2 if place % 3 == 0 else 0)
    client = client_of(make_member(books, "charlie", Role.ADMIN))
    bare, seen = [], 0
    for path in FIGURES:
        for row in re.findall(r"<tr[ >].*?</tr>", page_text(client, f"/c/books/{path.format(alice.pk)}")):
            words = unescape(re.sub(r"<[^>]*>", " ", row))
            cells = [unescape(re.sub(r"<[^>]*>", " ", cell)).strip() for cell in re.findall(r"<td.*?</td>", row)]
            if figures := [cell for cell in cells if FIGURE.match(cell)]:
                seen += 1
                if "n = " not in words and " to " not in words:
                    bare.append((path, figures, words[:200]))
    assert seen > 20, "the walk finds them"
    assert bare == []


def test_no_page_of_a_new_collection_draws_a_chart() -> None:
    world = World()
    make_collection("new", lab=True)
    client, drawn, pages = world.client("owner"), [], 0
    for route in routes(world):
        if not re.fullmatch(r"/c/birds/[a-z/-]*", route.path):
            continue
        answer = client.get(route.path.replace("/c/birds/", "/c/new/"))
        if answer.status_code == 200 and answer["Content-Type"].startswith("text/html"):
            pages += 1
            if 'class="chart"' in answer.text:
                drawn.append(route.path)
    assert pages > 40, "the walk finds them"
    assert drawn == []


SURE = Route(1, 5, 1)


@pytest.mark.parametrize(
    ("route", "voters", "stops_at", "words"),
    [
        (SURE, 5, 0, "Round 1 · votes 5-0 · relevant"),
        (SURE, 7, 0, "Round 1 · votes 6-1 · relevant"),
        (Route(2, 3, 0), 5, 0, "Round 2 · votes 4-1 · not relevant"),
        (Route(0, 2, 1), 5, 3, "Votes 3-1 · relevant"),
        (Route(0, 4, 1), 5, 0, "Votes 4-0 · relevant"),
        (Route(1, 0, 0), 0, 0, "Round 1 · not relevant"),
    ],
)
def test_a_route_reads_as_round_votes_and_label(route: Route, voters: int, stops_at: int, words: str) -> None:
    assert route.describe(voters, stops_at) == words


def test_a_route_reads_alike_on_the_pages_of_a_pair_and_of_all_pairs() -> None:
    books = make_books(queries=1)
    campaign, pair = Campaign.objects.get(), Pair.objects.first()
    assert pair is not None
    Work.objects.create(campaign=campaign, pair=pair, state="labelled", label=1, agreed_in_round=1, stratum=SURE.key)
    campaign.tallies.create(shard=0, key=f"route:{SURE.key}", value=1)
    client = client_of(make_member(books, "charlie", Role.ADMIN))
    words = "Round 1 · votes 5-0 · relevant"
    for path in (f"pairs/{pair.pk}/", "pairs/", f"pairs/?stratum={SURE.key}&campaign={campaign.number}"):
        assert words in page_text(client, f"/c/books/{path}"), path
