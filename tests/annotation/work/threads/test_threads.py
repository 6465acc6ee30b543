"""Comments and flags are answered beside the pair, and their authors learn what became of them, and nothing else."""

import re

import pytest
from django.db import DatabaseError, transaction
from django.test import Client
from django.utils import timezone

from annotation.home.inbox.attention import read_open_work
from annotation.models import Assignment, AuditEntry, Membership, Role
from annotation.models.threads import Thread, ThreadMessage
from annotation.work.adjudication import conflicts
from annotation.work.threads.selectors import count_unread
from corpus.models import Collection, Item
from tests.factories import client_of, make_collection, make_item, make_member, make_pair
from tests.queue_scene import claim, flag, submit

pytestmark = pytest.mark.django_db
EVIL = "<script>alert(1)</script>"


@pytest.fixture
def bob(collection: Collection) -> Membership:
    return make_member(collection, "bob", Role.ADJUDICATOR)


@pytest.fixture
def charlie(collection: Collection) -> Client:
    return client_of(make_member(collection, "charlie", Role.ADMIN))


def comment(member: Membership, text: str = "Cut off at the end.", grade: int = 1) -> Thread:
    """A new pair, judged by the member with a comment."""
    item = make_item(make_pair(member.collection))
    submit(member, claim(member), grade, comment=text)
    return Thread.objects.get(item=item, membership=member)


def flagged(member: Membership, note: str = "Two documents in one.") -> Thread:
    """A new pair, flagged by the member."""
    item = make_item(make_pair(member.collection))
    flag(member, claim(member), note)
    return Thread.objects.get(item=item)


def reply(client: Client, thread: Thread, **data: str) -> int:
    address = f"/c/books/threads/{thread.item_id}/{thread.public_id}/"
    return client.post(address, {"page": "pair", **data}).status_code


def unread(member: Membership) -> int:
    return count_unread(Membership.objects.get(pk=member.pk))


def test_a_comment_waits_until_an_admin_answers_it_and_its_author_reads_that_once(alice, charlie):
    thread, other = comment(alice), comment(alice, "Fine.")
    page = charlie.get("/c/books/")
    assert "2 comments and flags wait for an answer" in page.text
    listed = charlie.get("/c/books/pairs/?answer=waiting").context["page"]["rows"]
    assert {row["pk"] for row in listed} == {thread.pair_id, other.pair_id}
    assert reply(charlie, thread, text="The page was cut by the import.", outcome="corrected") == 302
    assert reply(charlie, thread, text="It is whole now.") == 302
    shown = charlie.get(f"/c/books/pairs/{thread.pair_id}/").text
    assert shown.index("Cut off at the end.") < shown.index("cut by the import") < shown.index("It is whole now.")
    assert [row["pk"] for row in charlie.get("/c/books/pairs/?answer=waiting").context["page"]["rows"]] == [
        other.pair_id
    ]
    assert charlie.get("/c/books/pairs/?answer=nonsense").context["page"]["rows"] == []
    entry = AuditEntry.objects.filter(act="thread.answered").latest("pk")
    assert entry.concerns == alice.user and entry.details == {"item": thread.item_id, "outcome": ""}

    client = client_of(alice)
    assert unread(alice) == 1
    assert 'class="count">1<' in " ".join(client.get("/c/books/judge/history/").text.split())
    page = client.get("/c/books/judge/replies/")
    assert [thread.pk for thread in page.context["page"].threads] == [thread.pk, other.pk], "the newest news first"
    assert "charlie" in page.text and "Outcome: document corrected" in page.text
    assert page.text.count("No answer yet.") == 1 and ">new<" in page.text
    assert unread(alice) == 1, "reading writes nothing"
    until = re.search(r'name="until" value="([^"]+)"', page.text)[1]
    assert client.post("/c/books/judge/replies/seen/", {"until": until}).status_code == 302
    assert unread(alice) == 0 and ">new<" not in client.get("/c/books/judge/replies/").text
    client.post("/c/books/judge/replies/seen/", {"until": "2020-01-01T00:00:00Z"})
    assert client.post("/c/books/judge/replies/seen/", {"until": "yesterday"}).status_code == 302
    assert unread(alice) == 0, "an older page takes nothing back"


@pytest.mark.parametrize("settled_by", ["adjudicator", "label", "withdrawal", "word"])
def test_a_flag_learns_what_became_of_its_pair_without_a_grade(alice, bob, charlie, settled_by):
    thread, client = flagged(alice, EVIL), client_of(alice)
    for page in (charlie.get(f"/c/books/pairs/{thread.pair_id}/"), client_of(bob).get("/c/books/adjudicate/")):
        assert EVIL not in page.text and "&lt;script&gt;alert(1)" in page.text
    assert thread.fate == "conflict" and not thread.waits and unread(alice) == 0
    assert "Outcome: Waiting for an adjudicator." in client.get("/c/books/judge/replies/").text
    if settled_by == "adjudicator":
        conflicts.adjudicate(bob, thread.item_id, 0)
        conflicts.undo_adjudication(bob, thread.item_id)
        assert Thread.objects.get(pk=thread.pk).fate == "conflict"
        conflicts.adjudicate(bob, thread.item_id, 1, comment="Both are about it.")
        words = "An adjudicator has decided this pair."
    elif settled_by == "label":
        charlie.post(f"/c/books/pairs/{thread.pair_id}/act/", {"kind": "label", "option": "1", "note": "Seen."})
        words = "An admin has set the label of this pair."
    elif settled_by == "withdrawal":
        Item.objects.update(state="withdrawn")
        words = "This pair is no longer judged."
    else:
        reply(charlie, thread, outcome="excluded")
        words = "pair excluded"
    page = client.get("/c/books/judge/replies/").text
    assert f"Outcome: {words}" in page
    assert unread(alice) == (settled_by != "withdrawal")
    assert "relevant" not in page.lower() and "Both are about it." not in page and "Seen." not in page
    assert not Thread.objects.get(pk=thread.pk).waits


def test_a_comment_waits_anew_when_it_is_written_anew_and_no_more_when_its_pair_was_decided(collection, alice, charlie):
    comment(Membership.objects.get(user__username="charlie"))
    assert read_open_work(collection).threads == 0, "what admins write waits for nobody"
    thread = comment(alice)
    reply(charlie, thread, text="Which sentence?")
    assert not Thread.objects.get(pk=thread.pk).waits
    Assignment.objects.filter(pk=thread.pk).update(ended_at=timezone.now())
    thread = Thread.objects.get(pk=thread.pk)
    assert thread.waits and [message.text for message in thread.replies] == ["Which sentence?"]
    charlie.post(f"/c/books/pairs/{thread.pair_id}/act/", {"kind": "label", "option": "0"})
    thread = Thread.objects.get(pk=thread.pk)
    assert not thread.waits and thread.outcome_text == ""
    for change in (lambda: ThreadMessage.objects.update(text="No."), lambda: ThreadMessage.objects.all().delete()):
        with pytest.raises(DatabaseError, match="Cannot update or delete"), transaction.atomic():
            change()


def test_nobody_reads_the_thread_of_another_and_adjudicators_read_no_name(collection, alice, bob, charlie):
    thread, dana = flagged(alice, "Ask me about it."), make_member(collection, "dana")
    own = comment(dana, "Mine alone.")
    reply(charlie, own, text="To Dana.")
    page = client_of(alice).get("/c/books/judge/replies/").text
    assert "Mine alone." not in page and "To Dana." not in page and "dana" not in page
    assert unread(alice) == 0 and unread(dana) == 1
    adjudicator = client_of(bob)
    page = adjudicator.get(f"/c/books/adjudicate/?show={thread.item_id}").text
    assert "Ask me about it." in page and "alice" not in page
    address = f"/c/books/threads/{thread.item_id}/{thread.public_id}/"
    answer = adjudicator.post(address, {"page": "adjudicate", "text": "Looking at it."}, follow=True)
    assert answer.redirect_chain == [(f"/c/books/adjudicate/?show={thread.item_id}", 302)]
    assert "Looking at it." in answer.text and "alice" not in answer.text
    assert "Looking at it." in client_of(alice).get("/c/books/judge/replies/").text


def test_an_empty_answer_an_unknown_outcome_and_another_collections_thread_are_refused(alice, charlie):
    thread = comment(alice)
    for data in ({}, {"text": "  "}, {"outcome": "nonsense"}, {"text": "a" * 2001}, {"text": "a\0b"}):
        assert reply(charlie, thread, **data) == 422, data
    refused = charlie.post(
        f"/c/books/threads/{thread.item_id}/{thread.public_id}/", {"text": ""}, headers={"HX-Request": "true"}
    )
    assert "Write a reply or choose an outcome" in refused.text and "<html" not in refused.text
    films = make_member(make_collection("films"), "frank", Role.ADMIN)
    elsewhere = f"/c/films/threads/{thread.item_id}/{thread.public_id}/"
    assert client_of(films).post(elsewhere, {"text": "A"}).status_code == 404
    assert reply(charlie, Thread(item_id=thread.item_id, public_id=1 << 70), text="A") == 404
    assert reply(client_of(alice), thread, text="A") == 403
    assert not ThreadMessage.objects.exists()
    fragment = charlie.post(elsewhere.replace("films", "books"), {"text": EVIL}, headers={"HX-Request": "true"})
    for page in (fragment, client_of(alice).get("/c/books/judge/replies/")):
        assert EVIL not in page.text and "&lt;script&gt;alert(1)" in page.text
