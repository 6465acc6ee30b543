"""Label quality of a collection, for the overview and the exports page."""

from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from annotation.agreement.cached_results import MeasuringFailed, measuring
from annotation.quality.label_quality.audits import measure_collection_audits
from annotation.quality.label_quality.kappas import measure_judges_alpha
from annotation.quality.label_quality.readiness import BlockingReason, assess_audits, assess_readiness
from annotation.quality.label_quality.statistics import StoredStatistics, cached_statistics, is_large
from corpus.errors import QuorumError
from corpus.models import Collection
from corpus.numbered import numbered_or_404
from judges.campaigns import selectors
from judges.models import Campaign
from store.sql import fetch_row

# Number of people who can judge.
COUNT_PEOPLE = """
SELECT count(*) FROM annotation_membership m JOIN annotation_user u ON u.id = m.user_id
WHERE m.collection_id = %(collection)s AND m.role > 0 AND m.is_active AND u.is_active AND m.paused_at IS NULL"""


@dataclass(frozen=True)
class LabelQuality:
    """The statistics of a collection, and why its labels should not be exported yet (`reasons`)."""

    status: dict[str, Any]  # As the command `status` prints it.
    people: int  # Number of active members who are not paused.
    statistics: StoredStatistics
    failure: str  # Why nothing could be measured; empty without a failure.
    reasons: tuple[BlockingReason, ...]
    campaign: int | None = None  # Number of the campaign whose figures these are; None: all campaigns.

    @property
    def filter(self) -> str:
        """Beginning of the query string of links to pairs."""
        return f"campaign={self.campaign}&" if self.campaign else ""


def find_campaign(collection: Collection, number: int | str) -> Campaign:
    """Return the judging campaign of this number. Raises Http404."""
    campaigns = Campaign.judging.select_related("collection")
    return numbered_or_404(campaigns, collection, number, _("Campaign not found."))


def load_readiness(collection: Collection) -> LabelQuality:
    """Read whether a collection's labels can be exported, and the label audits; other statistics are left out.

    1. Read the status. Without automatic labels it is all that is needed.
    2. Read stored statistics of a large collection; of a small one measure the audits.
    3. Only if these give a reason, measure the judges' agreement, which may give another.
    """
    status = selectors.campaign_status(collection, by_judge=False)
    if status["labelled"] and is_large(collection):
        return load_label_quality(collection, status=status)
    (people,) = fetch_row(COUNT_PEOPLE, collection=collection.pk)
    audits, failure, alpha = None, "", None
    try:
        with measuring(collection):
            if status["labelled"]:
                audits = measure_collection_audits(collection)
                if assess_audits(status["labelled"], audits, people):
                    alpha = measure_judges_alpha(collection)
    except (MeasuringFailed, QuorumError) as error:
        failure = str(error)
    reasons = assess_readiness(status, audits, people, alpha)
    return LabelQuality(status, people, StoredStatistics(stored=False, audits=audits), failure, reasons)


def load_label_quality(
    collection: Collection, campaign: Campaign | None = None, status: dict[str, Any] | None = None
) -> LabelQuality:
    """Read the status and statistics of a collection, or of a campaign; a failure is stored in the result."""
    if status is None:
        status = selectors.campaign_status(collection, campaign, by_judge=False)
    (people,) = fetch_row(COUNT_PEOPLE, collection=collection.pk)
    stored, failure = StoredStatistics(stored=False), ""
    try:
        with measuring(collection):
            stored = cached_statistics(collection, campaign)
    except (MeasuringFailed, QuorumError) as error:
        failure = str(error)
    judge_kappas = [kappa for kappa in stored.kappas or () if (kappa.group, kappa.population) == ("judges", "all")]
    reasons = assess_readiness(status, stored.audits, people, judge_kappas[0].kappa if judge_kappas else None)
    return LabelQuality(status, people, stored, failure, reasons, campaign.number if campaign else None)
