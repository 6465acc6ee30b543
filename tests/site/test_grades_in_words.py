"""Grades stand as a number with its words, in whatever table they are: "2 relevant", on every scale that has words."""

import re
from pathlib import Path

import pytest
from django.urls import reverse

from annotation.models import Role
from annotation.quality.label_errors import suspects
from corpus.labels import grade_label, name_grade
from corpus.models import Pair
from tests.admin_site import judged_collection
from tests.benchmark_scene import whole_scene
from tests.evidence import make_assessor, make_judgment
from tests.factories import client_of, make_member
from tests.judged_books import make_books
from tests.reading import flat
from tests.site.test_permissions import World, routes
from tests.training.lineage.test_browser_lineage import travelled_label

pytestmark = pytest.mark.django_db

COLUMNS = {
    "Grade", "Your grade", "Grade there", "Grade today", "Label", "Reference", "Verdict", "Majority", "Dawid-Skene",
    "Before", "After",
}  # fmt: skip
"""Headings under which a whole number is a grade, or a judge's verdict."""


def cells_of(row: str) -> list[str]:
    """The texts of a table row's cells."""
    return [flat(re.sub(r"<[^>]*>", "", cell)) for cell in re.findall(r"<t[hd]\b.*?</t[hd]>", row, re.DOTALL)]


def grades_in(html: str) -> list[tuple[str, str]]:
    """What stands in the columns of grades and begins with a whole number: heading and text."""
    pairs: list[tuple[str, str]] = []
    for table in re.findall(r"<table\b.*?</table>", html, re.DOTALL):
        head, _end, body = table.partition("</thead>")
        for row in re.findall(r"<tr\b.*?</tr>", body, re.DOTALL):
            pairs += zip(cells_of(head), cells_of(row), strict=False)
    return [(head, text) for head, text in pairs if head in COLUMNS and re.match(r"-?\d+(?![\d.,%])", text)]


def without_words(html: str) -> list[tuple[str, str]]:
    """Those of them that are a number alone."""
    return [(head, said) for head, said in grades_in(html) if said.isdigit()]


def test_a_grade_is_its_number_and_its_words_where_the_scale_has_any() -> None:
    for value, highest, words in (
        (0, 1, "0 not relevant"), (1, 1, "1 relevant"), (1, 3, "1 slightly relevant"), (2, 3, "2 relevant"),
        (3, 3, "3 fully relevant"), (0, 10, "0 not relevant"), (4, 10, "4"), (10, 10, "10 fully relevant"),
    ):  # fmt: skip
        assert name_grade(value, highest) == words
        assert bool(grade_label(value, highest)) == (" " in words)


@pytest.mark.slow
def test_no_table_of_any_page_shows_a_grade_without_words() -> None:
    world, books = World(), judged_collection()
    client = world.client("owner")
    seen, wrong = set(), {}
    for route in routes(world):
        for path in dict.fromkeys([route.path, route.path.replace("/birds/", "/books/")]):
            answer = client.get(path)
            if not answer.streaming and answer.get("Content-Type", "").startswith("text/html"):
                html = answer.content.decode()
                seen |= {head for head, _said in grades_in(html)}
                wrong[path] = without_words(html)
    for pair in Pair.objects.filter(collection=books):
        html = client.get(f"/c/books/pairs/{pair.pk}/").text
        seen |= {head for head, _said in grades_in(html)}
        wrong[f"pair {pair.pk}"] = without_words(html)
    assert {path: found for path, found in wrong.items() if found} == {}
    assert {"Label", "Verdict"} <= seen


def test_lineage_and_suspected_errors_name_grades_on_the_scale_of_the_collection(tmp_path: Path) -> None:
    books = make_books()
    pair, model = travelled_label(books, tmp_path)
    make_judgment(pair, make_assessor(books, "qrels", "reference"), 3)
    suspects.LABEL_ERRORS.compute_now(books)
    client = client_of(make_member(books, "charlie", Role.ADMIN))
    lineage = client.get(f"/c/books/pairs/{pair.pk}/lineage/").text
    assert "Today's label: grade 0 not relevant, from people." in flat(lineage)
    assert lineage.count("2 relevant") >= 2, "in the lists of exports and of qrels"
    whole = client.get(f"/c/books/pairs/{pair.pk}/").text
    assert "<strong>0 not relevant</strong>" in whole and "· 3 fully relevant" in flat(whole)
    others = ("/c/books/quality/label-errors/", reverse("model_lineage", args=["books", model.pk]))
    pages = [lineage, whole, *(client.get(address).text for address in others)]
    assert [without_words(page) for page in pages] == [[]] * len(pages)
    assert [bool(grades_in(page)) for page in pages] == [True] * len(pages)


@pytest.mark.slow
def test_the_benchmark_names_grades_too() -> None:
    books, charlie = whole_scene()
    client = client_of(charlie)
    root = f"/c/{books.name}/benchmark/"
    pages = [client.get(f"{root}qrels/diff/?one=1&other=2").text]
    pages += [client.get(f"{root}runs/{run.pk}/").text for run in books.runs.all()]
    assert [without_words(page) for page in pages] == [[]] * len(pages)
    assert any(grades_in(page) for page in pages[1:]) and grades_in(pages[0])


def test_the_search_for_grades_without_words_finds_one() -> None:
    page = "<table><thead><tr><th>Pair</th><th>Grade</th></tr></thead><tr><th>7</th><td>2</td></tr></table>"
    assert without_words(page) == [("Grade", "2")]
    assert without_words(page.replace("<td>2<", "<td>2 relevant<")) == []
