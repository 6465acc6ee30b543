"""Creating, opening and revoking read-only links to a page of a collection."""

import secrets
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.apps import apps
from django.db.models import F
from django.db.models.functions import Now
from django.dispatch import receiver
from django.utils import timezone
from django.utils.translation import gettext as _

from actions.errors import BadOption
from actions.services import Actor, Unchanged, action
from annotation.access.audit_log.recording import record
from annotation.home.sharing.options import ShareOptions
from annotation.home.sharing.selectors import digest_of, open_links
from annotation.models import User
from annotation.models.sharing import ShareLink
from annotation.people.accounts.withdrawing import not_administered, rights_lost
from corpus.errors import BadInput
from corpus.models import Collection

# Valid links of one collection at the same time.
MOST = 50


@dataclass(frozen=True, slots=True)
class MadeLink:
    """A new link and its token, which is not stored."""

    row: ShareLink
    token: str


def _note_link(options: ShareOptions, made: MadeLink) -> dict[str, Any]:
    return {"link": made.row.pk, "page": options.page.value, "days": options.days.value}


@action("share.made", noted=_note_link)
def share_page(actor: Actor, collection: Collection, options: ShareOptions) -> MadeLink:
    """Create a read-only link to a page. Raises BadInput for too many links, BadOption for an unknown report."""
    if open_links().filter(collection=collection).count() >= MOST:
        raise BadInput(_("This collection has %(count)s valid links: revoke one first.") % {"count": MOST})
    if options.report is not None:
        reports = apps.get_model("benchmark", "Report")._default_manager
        if not reports.filter(collection=collection, number=options.report).exists():
            raise BadOption("report", _("Report not found."))
    token = secrets.token_urlsafe(32)  # 43 characters, 256 bits.
    row = ShareLink.objects.create(
        collection=collection,
        page=options.page,
        report=options.report if options.page == ShareLink.SharedPage.REPORT else None,
        title=options.title,
        digest=digest_of(token),
        made_by=actor.user,
        expires_at=timezone.now() + timedelta(days=options.days),
    )
    return MadeLink(row, token)


@action("share.revoked", noted=lambda _options, row: {"link": row.pk, "page": row.page})
def revoke_link(actor: Actor, link: ShareLink) -> ShareLink | Unchanged:
    """Revoke a link, which stops working at once; repeating it changes nothing."""
    # The condition is in the UPDATE, so that only one of two concurrent revocations writes to the audit log.
    revoked = ShareLink.objects.filter(pk=link.pk, revoked_at=None).update(revoked_at=Now())
    return link if revoked else Unchanged(link)


def note_opening(link: ShareLink) -> None:
    """Count that the page of a link was opened."""
    # Only these columns, so that a concurrent revocation is not overwritten.
    ShareLink.objects.filter(pk=link.pk).update(opened=F("opened") + 1, last_opened_at=Now())


@receiver(rights_lost)
def revoke_made(sender: Any, person: User, by: User | None, **kwargs: Any) -> dict[str, int]:
    """Revoke the links of a person in collections that they no longer administer; return how many."""
    links = open_links().filter(not_administered(person), made_by=person).order_by("pk")
    rows = list(links.select_for_update(of=("self",)))
    ShareLink.objects.filter(pk__in=[row.pk for row in rows]).update(revoked_at=Now())
    for row in rows:
        record(by, "share.revoked", row.collection, concerns=person, link=row.pk, page=row.page)
    return {"shared": len(rows)}
