"""What requests may contain: a body up to a size that depends on its sender, and no NUL characters."""

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

MAX_ANONYMOUS_BYTES = 1_000_000  # The largest body without signing in: enough for forms, not for files.


class BodyLimitMiddleware(MiddlewareMixin):
    """Answers 413 if Content-Length is more than the sender may send, before Django spools the body to the disk."""

    def process_request(self, request: HttpRequest) -> HttpResponse | None:
        length = request.META.get("CONTENT_LENGTH") or "0"
        size = int(length) if length.isdecimal() else 0
        if size <= MAX_ANONYMOUS_BYTES:
            return None
        # A token is looked up and a session read only for large bodies, so that small requests pay nothing.
        is_signed_in = bearer_token(request) is not None or SESSION_KEY in request.session
        # A part of an upload is written to its file as it arrives: tus clients may send the whole file as one part.
        is_part = request.method == "PATCH" and request.content_type == PART_TYPE
        limit = settings.MAX_FILE_BYTES if is_part else settings.MAX_UPLOAD_BYTES
        if size <= limit and is_signed_in:
            return None
        if request.path_info.startswith("/api/"):
            return refuse(413, f"A request may have {limit // 1_000_000} MB, with a valid token.")
        return render(request, "413.html", {"most": limit // 1_000_000}, status=413)


NUL = "\x00"
# Part of psycopg's message about a text that PostgreSQL cannot store, and of Django's about the value of a field.
NUL_ERROR_TEXT = "NUL (0x00)"


class NoNulMiddleware(MiddlewareMixin):
    """Answers 400 for a NUL character in a path, a query string or a cookie, because PostgreSQL cannot store it.

    Forms report or drop a NUL character in a field. One that reaches the database nevertheless gives a 400 too.
    """

    def process_request(self, request: HttpRequest) -> HttpResponse | None:
        query = request.META.get("QUERY_STRING", "")
        if "%00" in query or any(NUL in text for text in (request.path_info, query, *request.COOKIES.values())):
            return refuse_nul(request)
        return None

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """Refuse a request with a NUL character that reached the database."""
        if isinstance(error, ValueError | DataError | psycopg.DataError) and NUL_ERROR_TEXT in str(error):
            return refuse_nul(request)
        return None


def refuse_nul(request: HttpRequest) -> HttpResponse:
    """Refuse a request with a NUL character: with a problem below the API, with the site's page elsewhere."""
    if request.path_info.startswith("/api/"):
        return refuse(400, "a NUL character")
    raise BadRequest("A NUL character")
