"""The four figures with which the Overview opens: each with its interval, or the action that measures it."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from annotation.models import Role
from annotation.quality.label_quality.statistics import (
    STATISTICS,
    StoredStatistics,
    count_labels,
    labels_chart,
    read_stored_statistics,
)
from corpus.models import Collection, Label
from tests.admin_site import audited, only_collection, people_at_work
from tests.evidence import make_campaign, make_judge, make_label
from tests.factories import client_of, make_collection, make_member, make_pair

pytestmark = pytest.mark.django_db


@pytest.fixture
def books() -> Collection:
    return only_collection()


@pytest.fixture
def charlie(books: Collection) -> Client:
    return client_of(people_at_work(books)["charlie"])


def figures(client: Client, name: str = "books") -> dict[str, Any]:
    people, accuracy, agreement, money = client.get(f"/c/{name}/").context["board"]["promise"]
    return {"people": people, "accuracy": accuracy, "agreement": agreement, "money": money}


def test_each_figure_has_its_interval_and_what_it_is_counted_over(books: Collection, charlie: Client) -> None:
    audited(books, right=38, wrong=2)
    found = figures(charlie)
    status = charlie.get("/c/books/").context["status"]
    ended, asked = status["labelled"] + status["escalated"], status["escalated"] + status["audits"]
    assert found["people"].value == f"{asked / ended:.1%}"
    assert found["people"].details[0] == f"{asked} of {ended} pairs, audits included"
    assert re.search(r" at \d+\.\d (s|min) a pair", found["people"].details[1]), "short times are not 0.0 min"
    assert (found["accuracy"].value, found["accuracy"].details) == (
        "95.0%", ("40 of 40 audits completed", "always-valid interval"),
    )  # fmt: skip
    audits = charlie.get("/c/books/").context["board"]["audits"]
    assert audits.looks.low < audits.overall.low and audits.looks.high >= audits.overall.value
    assert found["accuracy"].interval == f"{audits.looks.low:.1%} to {audits.looks.high:.1%}"
    assert "pairs with two or more of them" in found["agreement"].details[1]
    assert found["agreement"].interval or found["agreement"].details[-1] == "interval not known"
    page = charlie.get("/c/books/").text
    assert page.count("95% interval ") >= 2 and page.index("promise-h") < page.index("now-h")


def test_what_is_not_measured_names_the_action_that_measures_it() -> None:
    empty = make_collection("empty", budget=2.0)
    campaign = make_campaign(empty, [make_judge("judge-1")], policy="single")
    make_pair(empty)
    client = client_of(make_member(empty, "olga", Role.ADMIN))
    found = figures(client, "empty")
    assert [figure.value for figure in found.values()] == ["", "", "", "$0.00"]
    assert [figure.action for figure in found.values()] == [
        "Start a campaign", "Draw a label audit", "Set people per pair", "",
    ]  # fmt: skip
    assert found["money"].details[-1] == "$2.00 left of $2.00"
    for figure in found.values():
        assert not figure.address or client.get(figure.address.partition("#")[0]).status_code == 200
    Collection.objects.update(budget=None)
    assert figures(client, "empty")["money"].action == "Set a limit"
    page = client.get(f"/c/empty/?campaign={campaign.number}").text
    assert page.count("not measured yet") >= 3


def test_labels_over_time_are_drawn_from_the_second_day_on() -> None:
    books = make_collection("books")
    for number, origin in enumerate(("debate", "debate", "people")):
        make_label(make_pair(books), number % 2, origin)
    statistics = StoredStatistics(stored=False)
    assert [(judges, people) for _day, judges, people in count_labels(books)] == [(2, 1)]
    assert labels_chart(books, statistics) is None
    Label.objects.filter(origin="people").update(updated_at=timezone.now() - timedelta(days=3))
    assert [(judges, people) for _day, judges, people in count_labels(books)] == [(0, 1), (2, 0)]
    chart = labels_chart(books, statistics)
    assert chart is not None and "judges" in chart.svg and "people" in chart.svg
    assert labels_chart(books, StoredStatistics(stored=True)) is None, "a large collection's are stored"
    STATISTICS.refresh(books)
    assert len(read_stored_statistics(books).labels) == 2
