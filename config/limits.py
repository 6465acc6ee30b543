"""Limits of requests: no body larger than its sender may send, and no NUL character where something is named."""

import psycopg
from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.core.exceptions import BadRequest
from django.db import DataError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.deprecation import MiddlewareMixin

from annotation.data.imports.tus import PART_TYPE
from api.problems import refuse
from api.tokens import bearer_token

STRANGER = 1_000_000  # Bytes that somebody may send who is not signed in: forms, no files.


class BodyLimitMiddleware(MiddlewareMixin):
    """Answers 413 where the header announces more than its sender may send, before Django spools it to the disk."""

    def process_request(self, request: HttpRequest) -> HttpResponse | None:
        length = request.META.get("CONTENT_LENGTH") or "0"
        size = int(length) if length.isdecimal() else 0
        if size <= STRANGER:
            return None
        # A token is looked up and a session read only for large bodies, so that small requests pay nothing.
        known = bearer_token(request) is not None or SESSION_KEY in request.session
        # A part of an upload goes to its file as it comes: tus clients may send all of it as one.
        is_part = request.method == "PATCH" and request.content_type == PART_TYPE
        most = settings.MAX_FILE_BYTES if is_part else settings.MAX_UPLOAD_BYTES
        if size <= most and known:
            return None
        if request.path_info.startswith("/api/"):
            return refuse(413, f"A request may have {most // 1_000_000} MB, with a valid token.")
        return render(request, "413.html", {"most": most // 1_000_000}, status=413)


NUL = "\x00"
# psycopg says so of a text that PostgreSQL cannot hold, Django of a field's value.
REFUSED = "NUL (0x00)"


class NoNulMiddleware(MiddlewareMixin):
    """400 for a NUL character in an address, its query or a cookie: PostgreSQL holds none, so it names nothing.

    Forms say which of their fields holds one, or leave it out; what comes through all the same is a 400 too.
    """

    def process_request(self, request: HttpRequest) -> HttpResponse | None:
        asked = request.META.get("QUERY_STRING", "")
        if "%00" in asked or any(NUL in text for text in (request.path_info, asked, *request.COOKIES.values())):
            return refuse_nul(request)
        return None

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """Refuse a value of a body that reached the database."""
        if isinstance(error, ValueError | DataError | psycopg.DataError) and REFUSED in str(error):
            return refuse_nul(request)
        return None


def refuse_nul(request: HttpRequest) -> HttpResponse:
    """Refuse a request with a NUL character: programs get a problem, readers the site's page."""
    if request.path_info.startswith("/api/"):
        return refuse(400, "a NUL character")
    raise BadRequest("A NUL character")
