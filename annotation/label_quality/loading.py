"""Label quality of a collection, as the Overview and the exports page show it."""

from dataclasses import dataclass
from typing import Any

from django.db import connection

from annotation.agreement.cached_results import MeasuringFailed, measuring
from annotation.label_quality.readiness import BlockingReason, LabelFacts, assess_readiness
from annotation.label_quality.statistics import StoredStatistics, cached_statistics
from corpus.errors import QuorumError
from corpus.models import Collection, Label
from judges.campaigns import selectors
from judges.models import Campaign

MOST = 1_000  # Labels of earlier campaigns are counted up to here.
# Who could judge, and labels of judges that the newest campaign's audits do not speak for.
COUNTS = """
SELECT (SELECT count(*) FROM annotation_membership m JOIN annotation_user u ON u.id = m.user_id
        WHERE m.collection_id = %(collection)s AND m.is_active AND u.is_active AND m.paused_at IS NULL),
(SELECT count(*) FROM (
    SELECT FROM judges_work w JOIN judges_campaign c ON c.id = w.campaign_id
    WHERE c.collection_id = %(collection)s AND c.id < %(campaign)s AND w.state = 'labelled'
      AND c.kind = 'judging'
      AND NOT EXISTS (SELECT FROM judges_work n WHERE n.campaign_id = %(campaign)s AND n.pair_id = w.pair_id)
    LIMIT %(most)s) found)"""


@dataclass(frozen=True)
class LabelQuality:
    """The statistics of a collection, and why its labels should not go out yet (`reasons`; none: they can)."""

    status: dict[str, Any]  # As the command `status` gives it.
    people: int  # Who could judge: active members who are not paused.
    statistics: StoredStatistics
    failure: str  # Why nothing could be measured; "" where it could.
    reasons: tuple[BlockingReason, ...]


def load_label_quality(collection: Collection, campaign: Campaign | None) -> LabelQuality:
    """Read the status and the statistics of the newest campaign; a failure to measure is told and never raised."""
    status = selectors.campaign_status(collection, campaign)
    with connection.cursor() as cursor:
        cursor.execute(COUNTS, {"collection": collection.pk, "campaign": campaign.pk if campaign else 0, "most": MOST})
        people, earlier = map(int, cursor.fetchone())
    stored, failure = StoredStatistics(stored=False), ""
    try:
        with measuring(collection):
            stored = cached_statistics(collection, campaign)
    except (MeasuringFailed, QuorumError) as error:
        failure = str(error)
    facts = LabelFacts(
        labelled=status["labelled"],
        settled=status["settled"] or _has_labels(collection, status),
        unjudged=status["pending"] + status["running"],
        failed=status["failed"],
        open=status["open"],
        earlier=earlier,
        people=people,
        audits=stored.audits,
        alpha=_judges_alpha(stored),
    )
    return LabelQuality(status, people, stored, failure, assess_readiness(facts))


def _has_labels(collection: Collection, status: dict[str, Any]) -> bool:
    """Return whether the collection has labels although no judge gave one: of people, or imported."""
    return not status["labelled"] and Label.objects.filter(pair__collection=collection, aspect=None).exists()


def _judges_alpha(stored: StoredStatistics) -> float | None:
    known = [one for one in stored.kappas or () if (one.group, one.population) == ("judges", "all")]
    return known[0].kappa.value if known else None
