"""Races between two people who create or delete the same thing: the second gets the answer of a later request."""

import logging

from django.db import IntegrityError
from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils.deprecation import MiddlewareMixin
from django.views.defaults import page_not_found
from psycopg.errors import UniqueViolation

from corpus.errors import Deleted
from corpus.races import explain_race

logger = logging.getLogger(__name__)
FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")


class RaceMiddleware(MiddlewareMixin):
    """Calls the view of a form again if a unique constraint has refused it.

    Something that a view did not find may have been created a moment later. The second call finds it, and reports it
    in its form. Something that was deleted while a view used it is answered with 404 or 409 (corpus.races).
    """

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponseBase | None:
        if not isinstance(error.__cause__, UniqueViolation) or not isinstance(error, IntegrityError):
            if (race := explain_race(error)) is None:
                return None
            if not isinstance(error, Deleted):
                # It may still be a bug: the log shows where.
                logger.warning("a race was lost", exc_info=error)
            status, sentence = race
            if status == 404:
                return page_not_found(request, Http404(sentence))
            return render(request, "409.html", {"sentence": sentence}, status=status)
        # Only a form can be read again, not a body that a view reads as a stream.
        if request.method != "POST" or request.content_type not in FORMS:
            return None
        for _name, files in request.FILES.lists():
            for file in files:
                file.seek(0)
        match = request.resolver_match
        assert match is not None  # A view was called.
        answer: HttpResponseBase = match.func(request, *match.args, **match.kwargs)
        return answer
