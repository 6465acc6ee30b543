"""The campaign that an address asks for: `?campaign=N`, a filter. Without it a page speaks of the whole collection."""

from django.http import Http404
from django.utils.translation import gettext as _

from corpus.models import Collection
from judges.models import Campaign


def find_campaign(collection: Collection, number: str) -> Campaign | None:
    """Return the campaign of this number that judges; None where none is named. Raises Http404."""
    if not number:
        return None
    found = None
    if number.isdecimal() and len(number) < 16:
        found = Campaign.judging.filter(collection=collection, pk=int(number)).first()
    if found is None:
        raise Http404(_("Campaign not found."))
    return found
