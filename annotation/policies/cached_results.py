"""The comparison for a page: computed at once for small collections, by a worker for large ones."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from annotation.label_quality.statistics import is_large
from annotation.models import Computed
from annotation.policies.report import build_json_document, evaluate_policies
from corpus.models import Collection
from jobs import background, workers
from jobs.models import BackgroundJob
from judges.models import Campaign

COMPUTE = "annotation.compare_policies"
QUICK = 500  # Votes with log-probabilities up to which a page replays LARA without being asked to.

KEY = "policies"  # Under which `Computed.values` keeps the document beside the other statistics.


@dataclass(frozen=True, slots=True)
class StoredComparison:
    """`document` as annotation.policies.report makes it; None: not computed yet."""

    document: dict[str, Any] | None
    at: datetime | None
    stored: bool
    job: BackgroundJob | None = None  # Of a worker that compares anew, or the last that did.


def cached_comparison(collection: Collection, campaign: Campaign, *, lara: bool = False) -> StoredComparison:
    """The document of one campaign; `lara`: with LARA, however long it takes."""
    if not is_large(collection):
        found = evaluate_policies(collection, campaign, most=None if lara else QUICK)
        return StoredComparison(build_json_document(found), timezone.now(), stored=False)
    row = Computed.objects.filter(collection=collection).first()
    kept = row.values.get(KEY) if row else None
    job = background.last(COMPUTE, campaign.pk)
    if not kept or kept["document"]["campaign"] != campaign.pk:
        return StoredComparison(None, None, stored=True, job=job)
    return StoredComparison(kept["document"], parse_datetime(kept["at"]), stored=True, job=job)


def refresh_comparison(collection: Collection, campaign: Campaign) -> bool:
    """Compare and store: by a worker where one lives (False), else now (True)."""
    if workers.has_workers():
        background.enqueue(COMPUTE, campaign.pk)
        return False
    store_comparison(campaign)
    return True


def store_comparison(campaign: Campaign) -> None:
    """Compare now and keep the document with its time, beside the other statistics."""
    at = timezone.now()
    kept = {
        KEY: {"at": at.isoformat(), "document": build_json_document(evaluate_policies(campaign.collection, campaign))}
    }
    with transaction.atomic():
        row, _ = Computed.objects.select_for_update().get_or_create(collection=campaign.collection)
        row.values |= kept
        row.save(update_fields=["values"])
