"""API of read-only links to a page: list, create, revoke."""

from datetime import datetime
from typing import Any

from django.db import transaction
from django.http import HttpRequest
from django.utils.translation import gettext as _
from ninja import Field, Router, Schema, Status

from actions.services import Actor
from annotation.home.sharing.options import ShareOptions
from annotation.home.sharing.selectors import address_of, list_links
from annotation.home.sharing.services import revoke_link, share_page
from annotation.models.sharing import ShareLink
from api.authentication import MANAGE, may, scope_of
from api.operations import COLLECTION_PATH
from api.paging import Cursor, Limit, Page, find_row, page_of

router = Router(tags=["shared links"])
PATH = f"{COLLECTION_PATH}/share-links"


class ShareLinkOut(Schema):
    """A read-only link to one page; whoever has it needs no account."""

    number: int
    page: ShareLink.SharedPage
    report: int | None = Field(description="Number of the report; null: the newest one.")
    title: str
    made_by: str
    created_at: datetime
    expires_at: datetime
    revoked_at: datetime | None
    opened: int = Field(description="How often the page was opened.")
    last_opened_at: datetime | None


class NewShareLinkOut(Schema):
    """A new link with its address, which is not shown again."""

    link: ShareLinkOut
    address: str


@router.get(PATH, auth=may("admin"), response=Page[ShareLinkOut])
def list_share_links(request: HttpRequest, name: str, after: Cursor = 0, limit: Limit = 100) -> Any:
    """List the read-only links, those that expired or were revoked included."""
    return page_of(list_links(scope_of(request).collection), after, limit, _show_link)


@router.post(PATH, auth=may("admin", MANAGE), response={201: NewShareLinkOut})
def create_share_link(request: HttpRequest, name: str, body: ShareOptions) -> Any:
    """Create a read-only link; only this response has its address."""
    scope = scope_of(request)
    # Not repeatable: the stored answer would contain the token.
    made = share_page(Actor.of(scope), scope.collection, body)
    made.row.refresh_from_db()
    return Status(201, {"link": _show_link(made.row), "address": address_of(request, made.token)})


@router.delete(f"{PATH}/{{number}}", auth=may("admin", MANAGE), response={204: None})
def revoke_share_link(request: HttpRequest, name: str, number: int) -> Any:
    """Revoke a read-only link: it stops working at once."""
    scope = scope_of(request)
    with transaction.atomic():
        revoke_link(Actor.of(scope), find_row(list_links(scope.collection), number, _("Link not found.")))
    return Status(204, None)


def _show_link(row: ShareLink) -> dict[str, Any]:
    return {
        "number": row.pk,
        "made_by": row.made_by.username,
        **{
            name: getattr(row, name)
            for name in (
                "page",
                "report",
                "title",
                "created_at",
                "expires_at",
                "revoked_at",
                "opened",
                "last_opened_at",
            )
        },
    }
