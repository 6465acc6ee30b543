"""What found a collection's candidate pairs (corpus.importing.sources): imports store it, the Overview reads it."""

from django.utils import timezone

from annotation.models import StoredResult
from corpus.models import Collection
from jobs.results import key_of

KIND = "candidate-sources"


def store_sources(collection: Collection, counts: dict[str, int]) -> None:
    """Store the numbers of an import's candidates by source."""
    defaults = {"values": counts, "at": timezone.now()}
    StoredResult.objects.update_or_create(collection=collection, kind=KIND, key=key_of({}), defaults=defaults)


def read_sources(collection: Collection) -> dict[str, int]:
    """Return the numbers of the last import that named candidates; none where no import did."""
    row = StoredResult.objects.filter(collection=collection, kind=KIND).first()
    return (row.values or {}) if row else {}
