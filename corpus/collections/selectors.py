"""Reads that commands of every layer share."""

from django.utils.translation import gettext as _

from corpus.errors import BadInput
from corpus.models import Collection


def collection_named(name: str) -> Collection:
    """The collection, or BadInput that names those that exist."""
    found = Collection.objects.filter(name=name).first()
    if found is None:
        names = ", ".join(Collection.objects.order_by("name").values_list("name", flat=True)[:10])
        raise BadInput(
            (_('there is no collection "%(name)s"') % {"name": name})
            + (_("; there are: %(names)s") % {"names": names} if names else "")
        )
    return found
