"""The comparison for a page: computed at once for small collections, by a worker for large ones."""

from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from annotation.label_quality.statistics import is_large
from annotation.models import Computed
from annotation.policies.report import build_json_document, evaluate_policies
from corpus.models import Collection
from jobs import background, workers
from judges.models import Campaign

COMPUTE = "annotation.compare_policies"
QUICK = 500  # Votes with log-probabilities up to which a page replays LARA without being asked to.

KEY = "policies"  # Under which `Computed.values` keeps the document beside the other statistics.


def cached_comparison(collection: Collection, campaign: Campaign, *, lara: bool = False) -> dict[str, Any]:
    """The `document` of one campaign and its time, with the worker's job where it is `stored`; None: not computed yet.

    `lara`: with LARA, however long it takes.
    """
    if not is_large(collection):
        found = evaluate_policies(collection, campaign, most=None if lara else QUICK)
        return {"document": build_json_document(found), "at": timezone.now(), "stored": False}
    shown: dict[str, Any] = {"document": None, "at": None, "stored": True}
    shown["job"] = background.last(COMPUTE, campaign.pk)
    row = Computed.objects.filter(collection=collection).first()
    kept = row.values.get(KEY) if row else None
    # A collection keeps the document of one campaign: the one that was compared last.
    if kept and kept["document"]["campaign"] == campaign.number:
        shown |= {"document": kept["document"], "at": parse_datetime(kept["at"])}
    return shown


def refresh_comparison(collection: Collection, campaign: Campaign) -> bool:
    """Compare policies and store the result: return False where a worker does it, True where it is done already."""
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
        # Locked and merged: other statistics are kept in the same row by another worker.
        row, _ = Computed.objects.select_for_update().get_or_create(collection=campaign.collection)
        row.values |= kept
        row.save(update_fields=["values"])
