"""The campaign that an address asks for: `?campaign=N`, a filter. Without it a page speaks of the whole collection."""

from django.utils.translation import gettext as _

from corpus.models import Collection
from corpus.numbered import numbered_or_404
from judges.models import Campaign


def find_campaign(collection: Collection, number: str) -> Campaign | None:
    """Return the campaign of this number that judges; None where none is named. Raises Http404."""
    return numbered_or_404(Campaign.judging, collection, number, _("Campaign not found.")) if number else None
