"""Label quality of a collection, as the Overview and the exports page show it."""

from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from annotation.agreement.cached_results import MeasuringFailed, measuring
from annotation.quality.label_quality.readiness import BlockingReason, assess_readiness
from annotation.quality.label_quality.statistics import StoredStatistics, cached_statistics
from corpus.errors import QuorumError
from corpus.models import Collection
from corpus.numbered import numbered_or_404
from judges.campaigns import selectors
from judges.models import Campaign
from store.sql import fetch_row

# Who could judge.
PEOPLE = """
SELECT count(*) FROM annotation_membership m JOIN annotation_user u ON u.id = m.user_id
WHERE m.collection_id = %(collection)s AND m.is_active AND u.is_active AND m.paused_at IS NULL"""


@dataclass(frozen=True)
class LabelQuality:
    """The statistics of a collection, and why labels should not go out (`reasons`)."""

    status: dict[str, Any]  # As the command `status` gives it.
    people: int  # Who could judge: active members who are not paused.
    statistics: StoredStatistics
    failure: str  # Why nothing could be measured; "" where it could.
    reasons: tuple[BlockingReason, ...]
    campaign: int | None = None  # The figures are those of this one alone.

    @property
    def filter(self) -> str:
        """Begin of the query string of links to pairs."""
        return f"campaign={self.campaign}&" if self.campaign else ""


def find_campaign(collection: Collection, number: int | str) -> Campaign:
    """Return the campaign of this number that judges. Raises Http404."""
    rows = Campaign.judging.select_related("collection")
    return numbered_or_404(rows, collection, number, _("Campaign not found."))


def load_label_quality(
    collection: Collection, campaign: Campaign | None = None, status: dict[str, Any] | None = None
) -> LabelQuality:
    """Read status and statistics of a collection, or a campaign; failures are not raised."""
    if status is None:
        status = selectors.campaign_status(collection, campaign, by_judge=False)
    (people,) = fetch_row(PEOPLE, collection=collection.pk)
    stored, failure = StoredStatistics(stored=False), ""
    try:
        with measuring(collection):
            stored = cached_statistics(collection, campaign)
    except (MeasuringFailed, QuorumError) as error:
        failure = str(error)
    known = [one for one in stored.kappas or () if (one.group, one.population) == ("judges", "all")]
    reasons = assess_readiness(status, stored.audits, people, known[0].kappa.value if known else None)
    return LabelQuality(status, people, stored, failure, reasons, campaign.number if campaign else None)
