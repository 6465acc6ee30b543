"""Names for the grades of a collection: set as a whole, shown wherever a grade has words, listed by exports."""

from pathlib import Path

import pytest

from actions.services import Actor
from annotation.exports.options import ExportOptions
from annotation.exports.snapshots import create_snapshot, write_snapshot
from annotation.models import Role
from annotation.work.settings.services import change_settings
from corpus.collections.configure import configure_collection
from corpus.collections.options import SettingsOptions
from corpus.errors import BadOption
from corpus.labels import grade_label, name_grade
from corpus.models import Collection
from tests.factories import client_of, make_collection, make_item, make_member, make_pair
from tests.judged_books import make_books
from tests.reading import flat

NAMES = ["Off topic: shares words only", "Background", "Useful: helps with a part", "Perfect"]


def test_own_names_stand_in_place_of_the_built_in_ones_and_keep_their_capitals() -> None:
    assert [grade_label(grade, 3, NAMES) for grade in range(4)] == ["Off topic", "Background", "Useful", "Perfect"]
    assert name_grade(0, 3, NAMES) == "0 Off topic"
    assert name_grade(4, 10, ["zero"]) == "4" and name_grade(11, 10, NAMES * 3) == "11"


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("names", "problem"),
    [
        (NAMES[:3], "Name all grades from 0 to 3, one in each line, or none: there are 3 names"),
        ([*NAMES[:3], ": nothing before"], "Write the name before the colon"),
    ],
)
def test_half_a_scale_and_a_name_without_words_are_refused(names: list[str], problem: str) -> None:
    with pytest.raises(BadOption, match=problem):
        configure_collection(make_collection("books", grades=3), {"grade_names": names})


@pytest.mark.django_db
def test_names_go_with_the_scale_that_they_name() -> None:
    books = make_collection("books", grades=3, grade_names=NAMES)
    assert configure_collection(books, {"grades": 2}) == ["grade_names", "grades"]
    configure_collection(books, {"grades": 1, "grade_names": ["No", "Yes"]})
    assert Collection.objects.values_list("grades", "grade_names").get() == (1, ["No", "Yes"])


@pytest.mark.django_db
def test_the_settings_page_takes_a_line_for_each_grade_and_judges_read_them(tmp_path: Path) -> None:
    books = make_books()
    client = client_of(make_member(books, "charlie", Role.ADMIN))
    page = client.get("/c/books/settings/")
    form = {field.name: "" if field.value() is None else field.value() for field in page.context["form"]}
    answer = client.post("/c/books/settings/", form | {"grade_names": "\r\n".join(NAMES) + "\r\n\r\n"})
    assert answer.status_code == 302, answer.context and answer.context["form"].errors
    assert Collection.objects.get().grade_names == NAMES
    assert NAMES[0] in client.get("/c/books/settings/").text
    assert ">2 Useful</option>" in flat(client.get("/c/books/pairs/").text)

    make_item(make_pair(books))
    task = client_of(make_member(books, "alice")).post("/c/books/judge/next/", follow=True).text
    assert "<span>Off topic</span>" in task and 'title="helps with a part"' in task and "shares words only" in task

    snapshot = create_snapshot(Collection.objects.get(), ExportOptions(format="csv"), tmp_path / "export")
    assert write_snapshot(snapshot).manifest["options"]["grade_names"] == NAMES
    client.post("/c/books/settings/", form | {"grade_names": ""})
    assert Collection.objects.get().grade_names == []


@pytest.mark.django_db
def test_programs_set_names_as_a_list() -> None:
    books = make_collection("books", grades=1)
    options = SettingsOptions.read({"grade_names": ["No", "Yes: says it outright"]}, strict=True)
    assert change_settings(Actor("shell"), books, options) == ["grade_names"]
    with pytest.raises(BadOption) as refusal:
        SettingsOptions.read({"grade_names": ["No", "Y" * 251]})
    assert [name for name, _sentence in refusal.value.problems] == ["grade_names"]
