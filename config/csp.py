"""The Content-Security-Policy header: the same on every answer, so it is put together once."""

from functools import cache

from csp.constants import HEADER
from csp.utils import build_policy
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.deprecation import MiddlewareMixin


class PolicyMiddleware(MiddlewareMixin):
    """Sets the policy of the settings on every answer.

    django-csp's own puts it together anew for each answer, twice, because a view may change it. None here may: there
    are no nonces, exemptions or additions.
    """

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        """Add the header."""
        response.headers[HEADER] = policy()
        return response


@cache
def policy() -> str:
    """The header's value."""
    return str(build_policy())
