"""Limits of requests: the size of a body, depending on its sender, and no NUL characters in names."""

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

STRANGER = 1_000_000  # Bytes that people may send without signing in: forms, but no files.


class BodyLimitMiddleware(MiddlewareMixin):
    """Answers 413 if the header announces more than the sender may send, before Django spools it to the disk."""

    def process_request(self, request: HttpRequest) -> HttpResponse | None:
        length = request.META.get("CONTENT_LENGTH") or "0"
        size = int(length) if length.isdecimal() else 0
        if size <= STRANGER:
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
# In errors of psycopg about a text that PostgreSQL cannot store, and of Django about a field's value.
REFUSED = "NUL (0x00)"


class NoNulMiddleware(MiddlewareMixin):
    """Answers 400 for a NUL character in an address, its query or a cookie, which PostgreSQL cannot store.

    Forms report or drop a NUL character in a field; one that reaches the database all the same gives a 400, too.
    """

    def process_request(self, request: HttpRequest) -> HttpResponse | None:
        query = request.META.get("QUERY_STRING", "")
        if "%00" in query or any(NUL in text for text in (request.path_info, query, *request.COOKIES.values())):
            return refuse_nul(request)
        return None

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """Refuse a request with a NUL character that reached the database."""
        if isinstance(error, ValueError | DataError | psycopg.DataError) and REFUSED in str(error):
            return refuse_nul(request)
        return None


def refuse_nul(request: HttpRequest) -> HttpResponse:
    """Refuse a request with a NUL character: with a problem below the API, with the site's page elsewhere."""
    if request.path_info.startswith("/api/"):
        return refuse(400, "a NUL character")
    raise BadRequest("A NUL character")
