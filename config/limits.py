"""How large a request may be. Django spools uploads to the disk before any view asks who sent them; this asks first."""

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.deprecation import MiddlewareMixin

STRANGER = 1_000_000
"""Bytes that somebody may send who is not signed in: forms, no files."""


class BodyLimitMiddleware(MiddlewareMixin):
    """413 for a body that is larger than its sender may send. Small ones cost a comparison."""

    def process_request(self, request: HttpRequest) -> HttpResponse | None:
        """Before the body is read: its length stands in a header, and a body without one is taken for empty."""
        length = request.META.get("CONTENT_LENGTH") or "0"
        size = int(length) if length.isdecimal() else 0
        if size <= STRANGER or (size <= settings.MAX_UPLOAD_BYTES and SESSION_KEY in request.session):
            return None
        return render(request, "413.html", {"most": settings.MAX_UPLOAD_BYTES // 1_000_000}, status=413)
