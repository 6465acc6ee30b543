"""Reads that commands of every layer share."""

from corpus.errors import BadInput
from corpus.models import Collection


def collection_named(name: str) -> Collection:
    """The collection, or BadInput that names those that exist."""
    found = Collection.objects.filter(name=name).first()
    if found is None:
        names = ", ".join(Collection.objects.order_by("name").values_list("name", flat=True)[:10])
        raise BadInput(f'there is no collection "{name}"' + (f"; there are: {names}" if names else ""))
    return found
