"""What an annotator must not know is nowhere in the source of their pages: every reason, arm and step (check 5)."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from annotation.models import Assignment, Role
from corpus.models import Item, Judgment, Label, Pair, Target
from judges.models import Attempt, Campaign
from tests.evidence import make_assessor, make_attempt, make_judge, make_judgment
from tests.factories import client_of, make_collection, make_item, make_member, make_pair, make_query
from tests.judging_scene import debating_campaign
from tests.reading import holds

pytestmark = pytest.mark.django_db
HTMX = {"HX-Request": "true"}

GRADES = {"label": 7531, "gold": 6427, "other": 5318, "first": 4209, "senior": 3197}
"""No page has such numbers unless it prints one of these grades."""
SECRETS = [
    *map(str, GRADES.values()),
    "origin-word",  # where the label comes from
    "gold-keeper", "gold-remark",
    "bystander", "bystander-remark", "flag-remark",
    "senior-remark",
    "debater-a", "debater-b", "voter-name", "vote-reason",
    "0.123456", "0.654321",  # uncertainty of the panel, score of a teacher
    "campaign-panel",
]  # fmt: skip
REASON_WORDS = [str(reason.label) for reason in Item.Reason]
"""How admins are told why an item came; annotators get words of their own."""
DEBATE = ["turn-words", 'id="debate"', "<mark", "quote-F1"]
BLIND_REASONS = ["audit"]
ARMS = ["", *Item.Arm.values]
ALIKE = ["conflict", "split", "unparsed", "refused", "error", "stopped", "policy", "uncertain"]
"""Escalated for one reason or another: looked at by the weekly tests, like `disagreement` by the quick ones."""


def staged(reason: str, arm: str) -> Any:
    is_quick = reason == "disagreement" or (not arm and reason not in ALIKE)
    return pytest.param(reason, arm, marks=() if is_quick else pytest.mark.weekly)


IN_ARMS = [staged(reason, arm) for reason in Item.Reason.values for arm in ARMS if reason != Item.Reason.EVIDENCE]


@pytest.fixture(autouse=True)
def ids_beyond_grades(db):
    """Ids of rows stand in pages: after thousands of tests they would be the numbers that must not."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT setval(format('%I.%I', schemaname, sequencename)::regclass,"
            " greatest(coalesce(last_value, 1), 100000))"
            " FROM pg_sequences WHERE schemaname = 'public' AND data_type <> 'smallint'::regtype"
        )


@pytest.fixture
def books():
    return make_collection("books", title="Books", grades=3)


@pytest.fixture
def alice(books):
    return make_member(books, "alice")


@pytest.fixture
def client(alice):
    return client_of(alice)


def make_secrets(books, item: Item, *, words: str = "turn-words") -> None:
    """A debate, votes, a label, gold, and what others said about the item."""
    pair = item.pair
    Pair.objects.filter(pk=pair.pk).update(uncertainty=0.123456, teacher_score=0.654321)
    campaign = Campaign.objects.first() or debating_campaign(books)
    campaign.panel = "campaign-panel"
    campaign.save()
    for side, name, verdict in (("for", "debater-a", 1), ("against", "debater-b", 0)):
        judge = make_judge(name, version=item.pk + 100)
        told = {"reason": words, "quotes": [{"text": "A mapping object", "start": 0, "end": 16}]}
        make_attempt(campaign, pair, judge, verdict, role=side, round=1, **told)
    make_attempt(campaign, pair, make_judge("voter-name", version=item.pk + 100), 1, reason="vote-reason")
    Label.objects.create(pair=pair, grade=GRADES["label"], origin="origin-word")
    make_judgment(pair, make_assessor(books, "gold-keeper", "reference"), GRADES["gold"], comment="gold-remark")
    other = make_assessor(books, "bystander")
    for step in ("first", "final"):
        grade = GRADES["first" if step == "first" else "other"]
        make_judgment(pair, other, grade, item=item, step=step, comment="bystander-remark")
    senior = {"item": item, "step": "adjudication", "comment": "senior-remark"}
    make_judgment(pair, make_assessor(books, "senior"), GRADES["senior"], **senior)
    bystander = make_member(books, f"bystander-{item.pk}")
    kept = {"lease_until": timezone.now(), "ended_at": timezone.now(), "flag_note": "flag-remark"}
    Assignment.objects.create(item=item, membership=bystander, state="done", flagged=True, **kept)


def make(books, alice, reason: str, arm: str) -> Item:
    state = "standing" if reason in ("check", "qualification") else "open"
    shown_as = "disagreement" if reason in ("check", "qualification", "repeat", "study") else ""
    about = {"reason": reason, "arm": arm, "state": state, "shown_as": shown_as}
    item = make_item(make_pair(books), overlap=3, taken=2, done=1, **about)
    make_secrets(books, item)
    Assignment.objects.create(item=item, membership=alice, lease_until=timezone.now() + timedelta(minutes=10))
    return item


class Seen:
    """Pages of one annotator, each whole and as a fragment."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.sources: list[str] = []

    def keep(self, response) -> str:
        assert response.status_code in (200, 303, 409), response.status_code
        self.sources.append(response.content.decode())
        return self.sources[-1]

    def desk(self) -> str:
        """The open pair: the fragment, and the whole page, which is returned."""
        self.keep(self.client.get("/c/books/judge/", headers=HTMX))
        return self.keep(self.client.get("/c/books/judge/"))

    def post(self, where: str, **values: object) -> str:
        return self.keep(self.client.post(f"/c/books/judge/{where}/", values, headers=HTMX))

    def around(self, item: Item) -> None:
        """Everything else that an annotator may open."""
        for path in ("/", "/c/books/", "/c/books/judge/history/", f"/c/books/judge/history/{item.pk}/"):
            answer = self.client.get(path)
            assert answer.status_code in (200, 404)
            self.sources.append(answer.content.decode())

    def found(self, words: list[str]) -> list[str]:
        return [word for word in words if any(holds(source, word) for source in self.sources)]


def token_of(item: Item, member) -> str:
    return Assignment.objects.get(item=item, membership=member).token


@pytest.mark.parametrize(("reason", "arm"), IN_ARMS)
def test_no_label_vote_gold_or_name_in_any_arm_and_no_debate_before_its_time(books, alice, client, reason, arm):
    item = make(books, alice, reason, arm)
    blind = reason in BLIND_REASONS or arm == "hidden"
    waits = arm == "reveal" and not blind
    seen = Seen(client)
    page = seen.desk()
    assert item.pair.document.text in page or "<mark" in page
    # Why it came would say what the machines made of it: that they disagreed, or that they agreed (an audit).
    assert arm != "hidden" or "Judge from the text alone; no debate is shown." in page
    shown = [word for word in DEBATE if word in page]
    assert shown == ([] if blind or waits else DEBATE)
    seen.post("submit", item=item.pk, token="stale", grade=1)
    if waits:
        revealed = seen.post("submit", item=item.pk, token=token_of(item, alice), grade=2)
        assert [word for word in DEBATE if word in revealed] == DEBATE
        seen.desk()
        hidden = seen.post("undo", item=item.pk)
        assert [word for word in DEBATE if word in hidden] == []
        seen.post("submit", item=item.pk, token=token_of(item, alice), grade=0)
    seen.post("submit", item=item.pk, token=token_of(item, alice), grade=3)
    assert Judgment.objects.filter(item=item, assessor=alice.assessor, grade=3, step="final").exists()
    seen.around(item)
    seen.post("undo", item=item.pk)
    seen.desk()
    seen.post("skip", item=item.pk, token=token_of(item, alice), reason="other")
    seen.around(item)
    assert seen.found([*SECRETS, *REASON_WORDS, *(DEBATE if blind else ())]) == []


def test_a_pair_that_asks_for_texts_shows_no_vote_gold_or_name_of_a_person(books, alice, client):
    """That it is relevant is its reason; who wrote the draft is said on purpose (it is a model)."""
    item = make(books, alice, "evidence", "")
    about = {"version": 1, "kind": "judge", "writer": "writer-model", "contribution": "c", "evidence": "e"}
    Target.objects.create(pair=item.pair, item=item, good=False, **about)
    seen = Seen(client)
    seen.desk()
    seen.around(item)
    assert seen.found([*SECRETS, *DEBATE]) == []


def test_a_page_of_a_whole_query_keeps_each_pair_in_its_arm(books, alice, client):
    """Three documents of one query: only the shown one has its debate there, the revealed one after its first vote."""
    query = make_query(books)
    items = {arm: make_item(make_pair(books, query), arm=arm, overlap=3, taken=2, done=1) for arm in Item.Arm.values}
    for arm, item in items.items():
        make_secrets(books, item, words=f"turn-words-{arm}")
    seen = Seen(client)
    assert client.post("/c/books/judge/query/next/").status_code == 303
    page = seen.keep(client.get("/c/books/judge/query/"))
    assert [arm for arm in items if f"turn-words-{arm}" in page] == ["shown"]
    assert page.count('class="card-debate"') == 1
    revealed = items["reveal"]
    card = seen.post("query/submit", item=revealed.pk, token=token_of(revealed, alice), grade=1)
    assert "turn-words-reveal" in card
    assert "turn-words-reveal" not in seen.post("query/undo", item=revealed.pk)
    for arm in ("shown", "hidden", "reveal", "reveal"):
        item = items[arm]
        seen.post("query/submit", item=item.pk, token=token_of(item, alice), grade=3)
    assert Judgment.objects.filter(assessor=alice.assessor, step="final").count() == 3
    for item in items.values():
        seen.around(item)
    assert seen.found([*SECRETS, *REASON_WORDS, "turn-words-hidden"]) == []


def test_the_words_that_are_looked_for_are_really_there_for_others(books, alice):
    """What is not found above is in the database, and admins see it: the search can fail."""
    item = make(books, alice, "disagreement", "")
    page = client_of(make_member(books, "charlie", Role.ADMIN)).get(f"/c/books/pairs/{item.pair_id}/").text
    seen = {word for word in SECRETS if holds(page, word)}
    assert {"debater-a", "voter-name", "bystander", "bystander-remark", "origin-word", "gold-keeper"} <= seen
    assert Attempt.objects.filter(reason="vote-reason").exists()
