"""What is stored of search endpoints."""

from django.db.models import QuerySet
from django.http import Http404
from django.utils.translation import gettext as _

from benchmark.models import SearchEndpoint
from corpus.errors import BadOption


def endpoints() -> QuerySet[SearchEndpoint]:
    """Return the search endpoints of the site, by name."""
    return SearchEndpoint.objects.filter(is_deleted=False).order_by("name")


def find_endpoint(name: str) -> SearchEndpoint:
    """Return an endpoint by its name. Raises BadOption, which names those that exist."""
    endpoint = endpoints().filter(name=name).first()
    if endpoint is None:
        names = ", ".join(endpoints().values_list("name", flat=True)[:10])
        words = _('There is no search endpoint "%(name)s"; there are: %(names)s.')
        words = words if names else _('There is no search endpoint "%(name)s". Add it with search_endpoints add.')
        raise BadOption("endpoint", words % {"name": name, "names": names})
    return endpoint


def get_endpoint(number: int) -> SearchEndpoint:
    """Return an endpoint by its primary key. Raises Http404."""
    endpoint = endpoints().filter(pk=number).first()
    if endpoint is None:
        raise Http404(_("Search endpoint not found."))
    return endpoint
