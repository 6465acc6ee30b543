"""Reads read-only links: those of a collection, and the one of a token."""

from hashlib import sha256

from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone

from annotation.models.sharing import ShareLink
from corpus.models import Collection


def digest_of(token: str) -> str:
    """Return the SHA-256 of a token. With its 256 random bits a slow hash would add nothing."""
    return sha256(token.encode()).hexdigest()


def address_of(request: HttpRequest, token: str) -> str:
    """Return the address of a link's page."""
    return request.build_absolute_uri(reverse("shared_page", args=[token]))


def open_links() -> QuerySet[ShareLink]:
    """Return the links that are neither revoked nor expired."""
    return ShareLink.objects.filter(revoked_at=None, expires_at__gt=timezone.now()).select_related("collection")


def list_links(collection: Collection) -> QuerySet[ShareLink]:
    """Return all links of a collection, also those that do not work any more, the newest first."""
    return ShareLink.objects.filter(collection=collection).select_related("made_by", "collection").order_by("-pk")


def find_link(token: str) -> ShareLink | None:
    """Return the valid link of a token; None for any other text. By its digest, so that timing tells nothing."""
    return open_links().filter(digest=digest_of(token)).first()
