"""What is computed from every vote and judgment: at once for small collections, by a worker for large ones.

A page of a large collection reads the stored row and says "as of"; nothing that a GET asks for is written.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db import connection, transaction
from django.utils import timezone
from django.utils.translation import gettext_noop

from annotation.label_quality import kappas
from annotation.label_quality.annotators import measure_annotators
from annotation.label_quality.audits import load_audits, measure_audits
from annotation.label_quality.records import (
    Audits,
    Kappa,
    LabelQuality,
    OverTime,
    PeopleAgreement,
    PersonQuality,
    Point,
    dump_record,
    load_record,
)
from annotation.models import Computed
from corpus.models import Collection
from jobs import background, workers
from jobs.models import BackgroundJob
from judges.campaigns import counters
from judges.models import Campaign

COMPUTE = "annotation.compute_statistics"
SMALL = 20_000  # Votes and judgments up to which everything is computed while the page waits.
STALE_SECONDS = 120  # A stored row older than this is worth computing anew while work goes on.

SIZE = """
SELECT (SELECT coalesce(sum(t.value), 0) FROM judges_tally t JOIN judges_campaign c ON c.id = t.campaign_id
        WHERE c.collection_id = %(collection)s AND t.key IN ('calls', 'calls_cached'))
     + (SELECT count(*) FROM (
        SELECT FROM corpus_assessor a JOIN corpus_judgment j ON j.assessor_id = a.id
        WHERE a.collection_id = %(collection)s AND a.kind NOT IN ('policy', 'reference') LIMIT %(small)s) AS spoken)
"""
PEOPLE_POPULATION = gettext_noop("each annotator's first answers on this collection's pairs")


@dataclass(frozen=True, slots=True)
class StoredStatistics:
    """Everything of this module for one page. Three statements for a large collection."""

    trust: LabelQuality
    people: PeopleAgreement
    over_time: OverTime
    job: BackgroundJob | None = None  # Of a worker that computes them anew, or the last that did.


def cached_statistics(
    collection: Collection, campaign: Campaign | None, status: dict[str, Any] | None = None
) -> StoredStatistics:
    """Audits, kappas, people and agreement over time; `campaign` None: the newest."""
    campaign = campaign or Campaign.judging.filter(collection=collection).order_by("-pk").first()
    if is_large(collection):
        row = Computed.objects.filter(collection=collection).first()
        found = _load_statistics(row.values if row else None, row.at if row else None, campaign, stored=True)
        return replace(found, job=background.last(COMPUTE, collection.pk))
    return _load_statistics(compute_statistics(collection, campaign), timezone.now(), campaign, stored=False)


def read_label_quality(
    collection: Collection, campaign: Campaign | None = None, status: dict[str, Any] | None = None
) -> LabelQuality:
    """Audits by route and kappas by group and population."""
    return cached_statistics(collection, campaign, status).trust


def read_people_agreement(collection: Collection) -> PeopleAgreement:
    """Each annotator's work, accuracy and agreement."""
    return cached_statistics(collection, None).people


def agreement_over_time(collection: Collection) -> OverTime:
    """Agreement of judges and of people by day, or by week where it is longer than a month."""
    return cached_statistics(collection, None).over_time


def is_large(collection: Collection) -> bool:
    """Whether its statistics are a worker's business. One statement, from counters."""
    with connection.cursor() as cursor:
        cursor.execute(SIZE, {"collection": collection.pk, "small": SMALL + 1})
        (size,) = cursor.fetchone()
    return bool(size > SMALL)


def compute_statistics(collection: Collection, campaign: Campaign | None) -> dict[str, Any]:
    """All values as JSON takes them."""
    known = kappas.read_binary_votes(collection)
    unit, points = kappas.over_time(collection, known)
    audited = measure_audits(collection, campaign, counters.read(campaign.pk)) if campaign else None
    return {
        "campaign": campaign.pk if campaign else None,
        "audits": dump_record(audited) if audited else None,
        "kappas": [dump_record(one) for one in kappas.measure_kappas(collection, known)],
        "people": [dump_record(one) for one in measure_annotators(collection, known)],
        "unit": unit,
        "points": [dump_record(one) for one in points],
    }


def refresh_statistics(collection: Collection) -> bool:
    """Compute and store a large collection's statistics: by a worker where one lives (False), else now (True)."""
    if workers.has_workers():
        background.enqueue(COMPUTE, collection.pk)
        return False
    store_statistics(collection)
    return True


def store_statistics(collection: Collection) -> Computed:
    """Compute now and keep the values with their time; what else is kept beside them stays."""
    at = timezone.now()
    campaign = Campaign.judging.filter(collection=collection).order_by("-pk").first()
    values = compute_statistics(collection, campaign)
    with transaction.atomic():
        row, _ = Computed.objects.select_for_update().get_or_create(collection=collection)
        row.values, row.at = row.values | values, at
        row.save()
    return row


def is_stale(found: StoredStatistics) -> bool:
    """Whether a page should ask for new figures: they are stored, and old or missing."""
    if not found.trust.stored:
        return False
    return found.trust.at is None or (timezone.now() - found.trust.at).total_seconds() > STALE_SECONDS


def _load_statistics(
    values: dict[str, Any] | None, at: datetime | None, campaign: Campaign | None, *, stored: bool
) -> StoredStatistics:
    if not values or "kappas" not in values:
        trust = LabelQuality(None, None, None, stored)
        over = OverTime("day", None, None, kappas.OVER_TIME, stored)
        return StoredStatistics(trust, PeopleAgreement(None, None, stored, PEOPLE_POPULATION), over)
    known = tuple(_stored_kappa(one) for one in values["kappas"])
    same = campaign is not None and values["campaign"] == campaign.pk
    audited: Audits | None = load_audits(values["audits"]) if same and values["audits"] else None
    return StoredStatistics(
        LabelQuality(audited, known, at, stored),
        PeopleAgreement(
            tuple(load_record(PersonQuality, one) for one in values["people"]), at, stored, PEOPLE_POPULATION
        ),
        OverTime(
            values["unit"], tuple(load_record(Point, one) for one in values["points"]), at, kappas.OVER_TIME, stored
        ),
    )


def _stored_kappa(found: Mapping[str, Any]) -> Kappa:
    """A kappa from storage; older rows hold only how many assessors were copies, and no names."""
    copies = found.get("copies")
    named = tuple(map(tuple, copies)) if isinstance(copies, list) else ()
    return load_record(Kappa, {**found, "copies": named})
