"""Passages on their way in: a worker fetches, a person refines, and address, time and hash stay with the document."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from hashlib import sha256
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils import timezone, translation

from annotation.models import AuditEntry
from annotation.models.aspects import PassageDraft
from annotation.tasks import fetch_passage
from annotation.work.aspects import drafts
from corpus.aspects import revising
from corpus.aspects.entries import Wording
from corpus.errors import BadInput
from corpus.models import Document, Label, Query
from corpus.url_fetch.client import FetchLimits
from corpus.url_fetch.problems import describe_problem
from jobs import background, leases
from jobs.models import BackgroundJob
from tests.aspects_scene import ice_scene
from tests.engine_parts import _standing_worker, worker
from tests.factories import client_of
from tests.instances import until
from tests.open_web import NOISY, Web, open_web

pytestmark = pytest.mark.django_db
WHY = "Without it the answer is wrong."


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    with open_web(monkeypatch) as found:
        yield found


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Drafts that a worker was asked for."""
    found: list[int] = []
    monkeypatch.setattr(drafts.background, "enqueue", lambda _kind, draft: found.append(draft))
    return found


class Room:
    """Bob at the desk of a query with two aspects."""

    def __init__(self) -> None:
        self.collection, self.query, self.people = ice_scene()
        self.bob = self.people["bob"]
        for text in ("Flow", "Melting"):
            revising.add_aspect(self.query, self.bob.assessor, Wording(text, WHY))
        self.client = client_of(self.bob)
        self.home = f"/c/ice/aspects/{self.query.pk}/"

    def row(self) -> PassageDraft:
        return PassageDraft.objects.latest("pk")

    def refine(self, **fields: Any) -> Any:
        return self.client.post(f"{self.home}passages/{self.row().pk}/", fields)


@pytest.fixture
def room() -> Room:
    return Room()


def test_a_page_is_asked_for_fetched_refined_and_kept_with_its_source(
    room: Room, web: Web, sent: list[int], django_capture_on_commit_callbacks: Callable[..., Any]
) -> None:
    web.redirect("/thin", "/why")
    web.page("/why", NOISY)
    with django_capture_on_commit_callbacks(execute=True):
        room.client.post(f"{room.home}fetch/", {"url": " http://ice.example/thin "})
    assert (room.row().state, sent) == ("waiting", [room.row().pk])
    assert "waiting for a worker" in room.client.get(room.home).text
    assert room.client.get(f"{room.home}incoming/").text.count('hx-trigger="every 5s"') == 1
    for draft in (room.row().pk, room.row().pk, room.row().pk + 1):  # a message that comes twice, and one of nothing
        drafts.fetch_draft(draft)
    assert len(web.asked) == 2, "the address and where it led"
    assert "hx-trigger" not in room.client.get(f"{room.home}incoming/").text
    row = room.row()
    assert (row.state, row.final_url) == ("ready", "http://ice.example/why") and "ice sheets" in row.title
    assert row.sha256 == sha256(NOISY.encode()).hexdigest()
    page = room.client.get(f"{room.home}passages/{row.pk}/").text
    assert "creeps under stress" in page and "penguins" not in page
    assert room.refine(title="Thin ice", passage="Ice creeps under stress.", aspects=["a1"]).status_code == 302
    document = Document.objects.get(title="Thin ice")
    assert document.metadata["source"] == {
        "kind": "url",
        "url": "http://ice.example/why",
        "asked_url": "http://ice.example/thin",
        "fetched_at": row.fetched_at.isoformat(timespec="seconds"),
        "sha256": row.sha256,
    }
    assert Label.objects.get(pair__document=document).aspect.external_id == "a1"
    assert room.row().state == "used"
    acts = AuditEntry.objects.filter(act__startswith="aspects").values_list("act", flat=True)
    assert set(acts) == {"aspects.fetched", "aspects.revised"}


def test_a_private_address_fails_on_the_page_and_nothing_was_asked(room: Room, web: Web, sent: list[int]) -> None:
    for url in ("ice.example", "http://localhost/admin"):
        assert room.client.post(f"{room.home}fetch/", {"url": url}).status_code == 422
    assert not PassageDraft.objects.exists() and sent == []
    web.names["inside.example"] = ["127.0.0.1"]
    drafts.request_page(room.bob, room.query, "http://inside.example/admin")
    drafts.fetch_draft(room.row().pk)
    assert room.row().state == "failed" and web.asked == []
    page = room.client.get(room.home).text
    assert "inside.example" in page and "/again/" in page
    # One person waits for five pages at a time.
    for number in range(5):
        drafts.request_page(room.bob, room.query, f"http://ice.example/{number}")
    with pytest.raises(BadInput, match="5 pages"):
        drafts.request_page(room.bob, room.query, "http://ice.example/6")
    other = drafts.request_page(room.people["dana"], Query.objects.get(external_id="q2"), "http://ice.example/6")
    for part in ("", "again/", "dismiss/"):
        assert room.client.post(f"{room.home}passages/{other.pk}/{part}").status_code == 404, "of another query"


def test_a_slow_or_huge_page_fails_and_can_be_tried_again(room, web, sent, django_capture_on_commit_callbacks):
    web.page("/big", "x" * 200_000)
    draft = drafts.request_page(room.bob, room.query, "http://ice.example/big")
    drafts.fetch_draft(draft.pk, FetchLimits(bytes=100_000))
    assert room.row().error == '["large", {"most": 1}]'
    assert "larger than 1 MB" in describe_problem(room.row().error)
    with translation.override("zh-hans"):
        assert "1 MB" in describe_problem(room.row().error) and "larger" not in describe_problem(room.row().error)
    with django_capture_on_commit_callbacks(execute=True):
        room.client.post(f"{room.home}passages/{draft.pk}/again/")
    assert (room.row().state, room.row().error, sent) == ("waiting", "", [draft.pk] * 2)
    web.page("/big", NOISY)
    drafts.fetch_draft(draft.pk)
    assert room.row().state == "ready"


def test_what_a_killed_worker_left_is_offered_again_and_a_late_worker_changes_nothing(room, web, sent):
    web.page("/", NOISY)
    draft = drafts.request_page(room.bob, room.query, "http://ice.example/")
    long_ago = timezone.now() - timedelta(minutes=5)
    PassageDraft.objects.filter(pk=draft.pk).update(state="fetching", started_at=long_ago)
    assert "/again/" in room.client.get(room.home).text
    drafts.retry_fetch(room.row())
    with pytest.raises(BadInput, match="being fetched"):
        drafts.retry_fetch(room.row())
    drafts.dismiss(room.row())
    drafts.fetch_draft(draft.pk)
    assert (room.row().state, web.asked) == ("dismissed", [])


def test_a_page_whose_worker_was_killed_is_fetched_by_another(room: Room, web: Web) -> None:
    web.page("/", NOISY)
    draft = drafts.request_page(room.bob, room.query, "http://ice.example/")
    assert leases.claim(BackgroundJob, kind=drafts.FETCH) is not None
    PassageDraft.objects.filter(pk=draft.pk).update(state="fetching", started_at=timezone.now())
    fetch_passage()
    assert room.row().state == "fetching", "the lease of the first holds"
    BackgroundJob.objects.update(lease_until=timezone.now())
    fetch_passage()
    assert room.row().state == "ready" and not background.is_unfinished(drafts.FETCH, draft.pk)


def test_a_file_is_uploaded_refined_and_spread_over_two_aspects(room: Room) -> None:
    file = SimpleUploadedFile("../ice notes.txt", b"Ice flows. It melts below.\r\nBuy skis!")
    answer = room.client.post(f"{room.home}upload/", {"file": file})
    assert answer["Location"] == f"{room.home}passages/{room.row().pk}/"
    assert room.row().file == "ice notes.txt"
    answer = room.refine(title="Notes", passage="Ice flows. It melts below. Buy skis!", spread="1")
    page = room.client.get(answer["Location"]).text
    refused = room.refine(title="T", passage="Ice flows downhill.", aspects=[])
    assert refused.status_code == 422 and "Ice flows downhill." in refused.text
    room.refine(title="Notes", passage="Ice flows. It melts below. Buy skis!", spread="1")
    digest = page.split('name="text_sha256" value="')[1].split('"')[0]
    assert page.count('<select name="s"') == 3
    room.refine(text_sha256=digest, s=["a1", "a2", ""])
    made = Document.objects.filter(title="Notes").order_by("text")
    assert [(row.text, row.metadata["chunks"]) for row in made] == [("Ice flows.", [0, 0]), ("It melts below.", [1, 1])]
    assert made[0].metadata["source"]["file"] == "ice notes.txt"


def test_a_file_that_is_no_text_is_refused(room: Room) -> None:
    for body, words in (
        (b"\x89PNG\r\n\x00\x00", "This file is"),
        (b"\xff\xfea\0b\0c\0", "This file is text in UTF-16"),
        (b"%PDF-1.7 ...", "This file is a PDF"),
        (b"caf\xe9 and more", "not UTF-8"),
        (b"  ", "No text"),
        (b"x" * 2_000_001, "2 MB"),
    ):
        answer = room.client.post(f"{room.home}upload/", {"file": SimpleUploadedFile("f.txt", body)})
        assert answer.status_code == 422 and words in answer.text
    assert not PassageDraft.objects.exists()
    room.client.post(f"{room.home}upload/", {"file": SimpleUploadedFile("page.html", NOISY.encode())})
    assert "creeps under stress" in room.row().text and "Shop now" not in room.row().text


__all__ = ["_standing_worker", "worker"]


@pytest.mark.slow
def test_a_worker_takes_the_page_and_says_why_it_cannot_be_had(worker: object) -> None:
    _collection, query, people = ice_scene()
    draft = drafts.request_page(people["bob"], query, "http://nobody.invalid/")
    until(lambda: PassageDraft.objects.get(pk=draft.pk).state not in drafts.PENDING)
    row = PassageDraft.objects.get(pk=draft.pk)
    assert (row.state, "not be found" in describe_problem(row.error)) == ("failed", True)
