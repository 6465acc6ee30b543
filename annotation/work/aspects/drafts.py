"""Passage drafts: fetched pages and uploaded files until a person refines them into documents."""

from datetime import timedelta
from pathlib import PurePath
from time import monotonic
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.access.audit_log.recording import record
from annotation.models import Membership
from annotation.models.aspects import PassageDraft
from corpus.errors import BadInput
from corpus.formats import recognition
from corpus.models import Query
from corpus.url_fetch import texts
from corpus.url_fetch.pages import FetchedPage, FetchLimits, check_url, fetch_page
from corpus.url_fetch.problems import NoPage
from jobs import background

FETCH = "annotation.fetch_passage"
State = PassageDraft.State
PENDING = (State.WAITING, State.FETCHING)
MOST_PENDING = 5  # Pages that one person may wait for at a time.
MOST_UPLOADED = 2_000_000  # Bytes of an uploaded file.
SILENT = timedelta(seconds=60)  # After this long without news somebody may ask again.
TOLD_SECONDS = 0.5  # Between two notes of how many bytes have come.


@transaction.atomic
def request_page(member: Membership, query: Query, url: str) -> PassageDraft:
    """Ask a worker to fetch a page. Raises BadInput for an address that is none, and for too many pages at once."""
    url = url.strip()
    check_url(url)
    # What no worker took within a minute does not count: this person would wait for nothing.
    waiting = PassageDraft.objects.filter(asked_by=member, state__in=PENDING, asked_at__gt=timezone.now() - SILENT)
    if waiting.count() >= MOST_PENDING:
        raise BadInput(
            _("%(most)d pages are already being fetched for you. Wait until one is finished.") % {"most": MOST_PENDING}
        )
    draft = PassageDraft.objects.create(query=query, asked_by=member, url=url)
    record(member.user, "aspects.fetched", member.collection, query=query.external_id, url=url)
    background.enqueue(FETCH, draft.pk)
    return draft


@transaction.atomic
def retry_fetch(draft: PassageDraft) -> None:
    """Fetch once more what failed, or what nobody was heard of."""
    if not (draft.state == State.FAILED or is_silent(draft)) or not draft.url:
        raise BadInput(_("This page is already being fetched. Wait a moment."))
    fresh: dict[str, Any] = {"asked_at": timezone.now(), "started_at": None, "error": "", "bytes": 0}
    PassageDraft.objects.filter(pk=draft.pk).update(state=State.WAITING, **fresh)
    background.enqueue(FETCH, draft.pk)


def dismiss(draft: PassageDraft) -> None:
    """Dismiss a passage draft that is not used yet; its row stays."""
    PassageDraft.objects.filter(pk=draft.pk).exclude(state=State.USED).update(state=State.DISMISSED)


def is_silent(draft: PassageDraft) -> bool:
    """Return whether the passage waits too long: no worker took it, or the one that did is gone."""
    return draft.state in PENDING and (draft.started_at or draft.asked_at) < timezone.now() - SILENT


def fetch_draft(draft: int, limits: FetchLimits | None = None) -> None:
    """Fetch a page that was asked for; do nothing when it is here already or wanted no longer."""
    now = timezone.now()
    mine = PassageDraft.objects.filter(pk=draft, state__in=PENDING)
    if not mine.update(state=State.FETCHING, started_at=now, bytes=0):
        return
    # A second, later worker moves `started_at`: from then on nothing of this one is written.
    held = PassageDraft.objects.filter(pk=draft, state=State.FETCHING, started_at=now)
    row = PassageDraft.objects.get(pk=draft)
    told = monotonic()

    def tell(received: int) -> None:
        nonlocal told
        if monotonic() - told > TOLD_SECONDS:
            told = monotonic()
            held.update(bytes=received)

    try:
        page = fetch_page(row.url, limits, tell)
        title, text = texts.extract_text(page)
    except NoPage as problem:
        held.update(state=State.FAILED, error=problem.stored)
    # Whatever the parser of a stranger's page does, the person is told; the log has the error.
    except Exception:
        held.update(state=State.FAILED, error=NoPage("reader").stored)
        raise
    else:
        held.update(
            state=State.READY, final_url=page.url[:2000], title=title, text=text, sha256=page.sha256,
            bytes=len(page.body), fetched_at=timezone.now(),
        )  # fmt: skip


@transaction.atomic
def store_upload(member: Membership, query: Query, name: str, body: bytes) -> PassageDraft:
    """Keep a file of text or HTML, to be refined. BadInput: it is neither, too large or empty."""
    if len(body) > MOST_UPLOADED:
        raise BadInput(
            _("The file is larger than %(most)d MB. Shorten it first.") % {"most": MOST_UPLOADED // 1_000_000}
        )
    if known := recognition.recognise_format(body, pages=True):
        raise BadInput(
            _("This file is %(what)s, not text. Save it as plain text or as a web page.") % {"what": known.what}
        )
    if b"\0" in body:
        raise BadInput(_("This is not a text file. Save it as plain text or as a web page."))
    page = FetchedPage("", texts.media_of(body), "", body)
    title, text = texts.extract_text(page)
    return PassageDraft.objects.create(
        query=query, asked_by=member, state=State.READY, file=PurePath(name.replace("\\", "/")).name[:255],
        title=title, text=text, sha256=page.sha256, bytes=len(body), fetched_at=timezone.now(),
    )  # fmt: skip


def source_metadata(draft: PassageDraft) -> dict[str, str]:
    """Return the source that a passage's metadata keeps: its address or file, time and hash."""
    at = draft.fetched_at.isoformat(timespec="seconds") if draft.fetched_at else ""
    if draft.url:
        redirected = {"asked_url": draft.url} if draft.final_url != draft.url else {}
        found = {"kind": "url", "url": draft.final_url, **redirected}
    else:
        found = {"kind": "upload", "file": draft.file}
    return {**found, "fetched_at": at, "sha256": draft.sha256}
