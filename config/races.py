"""Two people who make a thing of one name at once: the second is answered as if they had come a moment later."""

from django.db import IntegrityError
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.deprecation import MiddlewareMixin
from psycopg.errors import UniqueViolation

FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")


class RaceMiddleware(MiddlewareMixin):
    """Calls the view of a form once more where a unique constraint refused it.

    What is looked for and not found can be there a moment later. The second call finds it, and says so in its form.
    """

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponseBase | None:
        if not isinstance(error.__cause__, UniqueViolation) or not isinstance(error, IntegrityError):
            return None
        # Only a form can be read again: what a view reads as it comes is gone.
        if request.method != "POST" or request.content_type not in FORMS:
            return None
        for _name, files in request.FILES.lists():
            for file in files:
                file.seek(0)
        match = request.resolver_match
        assert match is not None  # a view was called
        answer: HttpResponseBase = match.func(request, *match.args, **match.kwargs)
        return answer
