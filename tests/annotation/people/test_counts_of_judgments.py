"""Every page and answer that says how many judgments somebody gave says the same."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from annotation.home.overview.overview import list_collection_cards, own_work
from annotation.models import Assignment, Role
from annotation.people.accounts.members import list_members
from annotation.people.pay import list_pay
from annotation.people.table import annotator_record
from annotation.work.judging.page import read_figures
from annotation.work.quality_control import exclusion
from annotation.work.queue.annotators import start_of_site_day
from api.tokens import make_token
from tests.evidence import make_judgment
from tests.factories import client_of, make_collection, make_item, make_member, make_pair

pytestmark = pytest.mark.django_db


def test_one_count_of_judgments_stands_everywhere() -> None:
    books = make_collection("books")
    alice, charlie = make_member(books, "alice"), make_member(books, "charlie", Role.ADMIN)
    reasons = ["disagreement"] * 8 + ["check", "check", "qualification", "repeat"]
    # Then a flag, an edited text and a pair that was skipped: none of them is a judgment.
    for reason in (*reasons, "split", "evidence", "conflict"):
        item = make_item(make_pair(books), state="settled", taken=1, done=1, reason=reason)
        judged = reason not in ("split", "evidence", "conflict")
        values = {"item": item, "guideline": 0, "milliseconds": 4_000}
        Assignment.objects.create(
            item=item,
            membership=alice,
            state="skipped" if reason == "conflict" else "done",
            flagged=reason == "split",
            judgment=make_judgment(item.pair, alice.assessor, 1, **values) if judged else None,
            lease_until=timezone.now(),
            ended_at=timezone.now(),
        )
    client, own = client_of(charlie), client_of(alice)
    token = make_token(alice.user, None, name="test", scopes=("read", "judge"), days=1)[1]
    headers = {"Authorization": f"Bearer {token}"}

    def counts() -> dict[str, int]:
        listed = list_members(books).get(pk=alice.pk)
        person = client.get(f"/c/books/people/{alice.pk}/").text
        row = re.search(r"alice.*?</tr>", client.get("/c/books/members/").text, re.DOTALL)
        assert row is not None
        said = {
            "member": listed.judged,
            "today": listed.today,
            "judging page": read_figures(alice).today,
            "card": next(card["judged"] for card in list_collection_cards(alice.user)),
            "own work": own_work(alice)["judged"],
            "own day": own_work(alice)["today"],
            "record": annotator_record(alice)["standing"],
            "pay": sum(row.work.judgments for row in list_pay(books)),
            "API": own.get("/api/v1/collections/books/task", headers=headers).json()["judged_today"],
        }
        for name, pattern, text in (
            ("table", r'data-label="Judged">(\d+)<', row.group()),
            ("home", r"<strong>(\d+)</strong><span>judged in total", own.get("/c/books/").text),
            ("person", r"(\d+) judgments? counts?\.", person),
            ("history", r"in total: (\d+)\.", own.get("/c/books/judge/history/").text),
            ("quality", r"<dt>Judged</dt><dd>\s*(?:<a[^>]*>)?\s*(\d+)<", person),
        ):
            if (found := re.search(pattern, text)) is not None:
                said[name] = int(found[1])
        return said

    before = counts()
    assert set(before.values()) == {12} and {"table", "home", "person", "quality", "history"} <= set(before), before
    since = timezone.now() - timedelta(days=1)
    exclusion.exclude_judgments(membership=alice, by=charlie.user, since=since)
    assert set(counts().values()) == {0}, counts()


@pytest.mark.parametrize(("zone", "minutes", "count"), [("Etc/GMT-14", -1, 0), ("Etc/GMT+12", 1, 1)])
def test_today_is_the_day_of_the_site_everywhere(settings: Any, zone: str, minutes: int, count: int) -> None:
    """Not that of the database, UTC: at any hour, one of the two zones has another day."""
    settings.TIME_ZONE = zone
    books = make_collection("books")
    alice = make_member(books, "alice")
    item = make_item(make_pair(books), state="settled", taken=1, done=1)
    judgment = make_judgment(item.pair, alice.assessor, 1, item=item, guideline=0)
    ended_at = start_of_site_day() + timedelta(minutes=minutes)
    Assignment.objects.create(
        item=item, membership=alice, state="done", judgment=judgment, lease_until=ended_at, ended_at=ended_at
    )
    todays = {
        "member": list_members(books).get(pk=alice.pk).today,
        "judging page": read_figures(alice).today,
        "own day": own_work(alice)["today"],
        "record": annotator_record(alice)["today"],
    }
    assert set(todays.values()) == {count}, todays
