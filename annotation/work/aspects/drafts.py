"""Passage drafts: fetched pages and uploaded files that a person refines into documents."""

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
from corpus.url_fetch.addresses import check_url
from corpus.url_fetch.client import FetchLimits
from corpus.url_fetch.pages import FetchedPage, fetch_page
from corpus.url_fetch.problems import NoPage
from jobs import background

FETCH = "annotation.fetch_passage"
State = PassageDraft.State
PENDING = (State.WAITING, State.FETCHING)
MOST_PENDING = 5  # The most pages that are fetched for a person at a time.
MOST_UPLOADED = 2_000_000  # The most bytes of an uploaded file.
SILENT = timedelta(seconds=60)  # After so long without progress a person may retry a fetch.
PROGRESS_SECONDS = 0.5  # Between two updates of the number of received bytes.


@transaction.atomic
def request_page(member: Membership, query: Query, url: str) -> PassageDraft:
    """Queue the fetch of a page. Raises BadInput for a wrong address and for too many pages at a time."""
    url = url.strip()
    check_url(url)
    # A page that no worker took within a minute does not count, because nobody fetches it.
    pending = PassageDraft.objects.filter(asked_by=member, state__in=PENDING, asked_at__gt=timezone.now() - SILENT)
    if pending.count() >= MOST_PENDING:
        raise BadInput(
            _("%(most)d pages are already being fetched for you. Wait until one is finished.") % {"most": MOST_PENDING}
        )
    draft = PassageDraft.objects.create(query=query, asked_by=member, url=url)
    record(member.user, "aspects.fetched", member.collection, query=query.external_id, url=url)
    background.enqueue(FETCH, draft.pk)
    return draft


@transaction.atomic
def retry_fetch(draft: PassageDraft) -> None:
    """Queue the fetch of a page again, after a failure or a minute without progress. Raises BadInput."""
    if not (draft.state == State.FAILED or is_silent(draft)) or not draft.url:
        raise BadInput(_("This page is already being fetched. Wait a moment."))
    reset: dict[str, Any] = {"asked_at": timezone.now(), "started_at": None, "error": "", "bytes": 0}
    PassageDraft.objects.filter(pk=draft.pk).update(state=State.WAITING, **reset)
    background.enqueue(FETCH, draft.pk)


def dismiss(draft: PassageDraft) -> None:
    """Dismiss a passage draft that is not used yet; the row stays."""
    PassageDraft.objects.filter(pk=draft.pk).exclude(state=State.USED).update(state=State.DISMISSED)


def is_silent(draft: PassageDraft) -> bool:
    """Return whether the fetch is pending for too long: no worker took it, or its worker was lost."""
    return draft.state in PENDING and (draft.started_at or draft.asked_at) < timezone.now() - SILENT


def fetch_draft(draft: int, limits: FetchLimits | None = None) -> None:
    """Fetch the page of a pending draft; do nothing where it is fetched or dismissed already."""
    now = timezone.now()
    pending = PassageDraft.objects.filter(pk=draft, state__in=PENDING)
    if not pending.update(state=State.FETCHING, started_at=now, bytes=0):
        return
    # A later worker sets another `started_at`, after which this one writes nothing more.
    own_fetch = PassageDraft.objects.filter(pk=draft, state=State.FETCHING, started_at=now)
    row = PassageDraft.objects.get(pk=draft)
    updated_at = monotonic()

    def update_progress(received: int) -> None:
        nonlocal updated_at
        if monotonic() - updated_at > PROGRESS_SECONDS:
            updated_at = monotonic()
            own_fetch.update(bytes=received)

    try:
        page = fetch_page(row.url, limits, update_progress)
        title, text = texts.extract_text(page)
    except NoPage as problem:
        own_fetch.update(state=State.FAILED, error=problem.stored)
    # The parser of a page may fail in any way: the draft fails with a message, and the error is logged.
    except Exception:
        own_fetch.update(state=State.FAILED, error=NoPage("reader").stored)
        raise
    else:
        own_fetch.update(
            state=State.READY, final_url=page.url[:2000], title=title, text=text, sha256=page.sha256,
            bytes=len(page.body), fetched_at=timezone.now(),
        )  # fmt: skip


@transaction.atomic
def store_upload(member: Membership, query: Query, name: str, body: bytes) -> PassageDraft:
    """Store an uploaded text or HTML file as a draft. Raises BadInput for other, too large or empty files."""
    if len(body) > MOST_UPLOADED:
        raise BadInput(
            _("The file is larger than %(most)d MB. Shorten it first.") % {"most": MOST_UPLOADED // 1_000_000}
        )
    if file_format := recognition.recognise_format(body, pages=True):
        raise BadInput(
            _("This file is %(what)s, not text. Save it as plain text or as a web page.") % {"what": file_format.name}
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
    """Return the source for a passage's metadata: address or file, time and hash."""
    fetched_at = draft.fetched_at.isoformat(timespec="seconds") if draft.fetched_at else ""
    if draft.url:
        redirected = {"asked_url": draft.url} if draft.final_url != draft.url else {}
        source = {"kind": "url", "url": draft.final_url, **redirected}
    else:
        source = {"kind": "upload", "file": draft.file}
    return {**source, "fetched_at": fetched_at, "sha256": draft.sha256}
