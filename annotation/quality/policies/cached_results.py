"""The comparison of policies for its page: computed at once for small collections, by a worker for large ones."""

from typing import Any

from django.utils import timezone

from annotation.models import StoredResult
from annotation.quality.label_quality.statistics import is_large
from annotation.quality.policies.report import evaluate_policies
from corpus.models import Collection
from jobs.results import ResultKind
from judges.models import Campaign

QUICK = 500  # Number of votes with log-probabilities up to which a page always replays LARA.


def cached_comparison(collection: Collection, campaign: Campaign, *, lara: bool = False) -> dict[str, Any]:
    """Return a campaign's `document` (None: not computed) and its time. `lara`: with LARA, however many votes."""
    if not is_large(collection):
        document = evaluate_policies(collection, campaign, most=None if lara else QUICK)
        return {"document": document, "at": timezone.now(), "stored": False}
    result = POLICIES.read(collection, campaign=campaign.pk)
    return {"document": result.values, "at": result.at, "stored": True, "job": result.job}


# One document is stored for a collection: that of the campaign that was compared last.
POLICIES = ResultKind(
    "policies",
    "annotation.compare_policies",
    StoredResult,
    lambda collection, options, _tell: evaluate_policies(
        collection, Campaign.objects.select_related("collection").get(pk=options["campaign"])
    ),
)
