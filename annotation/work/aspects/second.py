"""Second readings: a sample of queries whose aspects a second person weighs without seeing the first weights."""

import random
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from annotation.access.audit_log.recording import record
from annotation.models import Membership
from annotation.models.aspects import BlindSample, SecondReading
from annotation.work.aspects.kappa import importance_agreement
from corpus.aspects.entries import Entries, load_aspects
from corpus.errors import BadInput
from corpus.models import Collection
from corpus.models.aspects import AspectRevision

SIZE = 50  # The default number of queries of a sample (BRIGHT-Pro 3.3).
MOST = 5_000  # The largest sample.
FAR = 2  # Aspects whose two importances differ by at least so much are listed for discussion.


@dataclass(frozen=True, slots=True)
class WeighingTask:
    """A query to weigh: its aspects in an order that does not reveal the first weights."""

    revision: AspectRevision
    entries: Entries


def newest_sample(collection: Collection) -> BlindSample | None:
    """Return the newest sample; None where there is none."""
    return BlindSample.objects.filter(collection=collection).order_by("-pk").first()


@transaction.atomic
def draw_sample(member: Membership, *, size: int = SIZE, seed: int = 0) -> BlindSample:
    """Draw a sample of queries with aspects; the same seed draws the same queries. Raises BadInput."""
    if not 1 <= size <= MOST:
        raise BadInput(_("Enter a number of queries from 1 to %(most)d.") % {"most": MOST})
    newest = (
        AspectRevision.objects.filter(query__collection=member.collection, query__is_current=True)
        .order_by("query__external_id", "query", "-number")
        .distinct("query__external_id", "query")
    )
    candidates = [row.pk for row in newest if row.aspects]
    if not candidates:
        raise BadInput(_("No query has aspects yet. Decompose some queries first."))
    drawn = random.Random(seed).sample(candidates, min(size, len(candidates)))
    record(member.user, "aspects.sample", member.collection, queries=len(drawn), seed=seed)
    return BlindSample.objects.create(collection=member.collection, seed=seed, revisions=drawn)


def next_task(sample: BlindSample, member: Membership) -> WeighingTask | None:
    """Return a query of the sample that nobody has weighed and that the member never worked on; None at the end."""
    weighed = set(SecondReading.objects.filter(sample=sample).values_list("revision", flat=True))
    unweighed = [pk for pk in sample.revisions if pk not in weighed]
    own = AspectRevision.objects.filter(author=member.assessor, query__collection=sample.collection).values("query")
    open_revisions = set(
        AspectRevision.objects.filter(pk__in=unweighed).exclude(query__in=own).values_list("pk", flat=True)
    )
    # In an order by member, so that two people seldom get the same query.
    order = sorted((pk for pk in unweighed if pk in open_revisions), key=lambda pk: _shuffle_key(f"{member.pk}:{pk}"))
    if not order:
        return None
    revision = AspectRevision.objects.select_related("query").get(pk=order[0])
    return WeighingTask(revision, shuffle_aspects(load_aspects(revision.aspects), str(sample.pk)))


def shuffle_aspects(entries: Entries, seed: str) -> Entries:
    """Return the aspects in an order that depends on the seed and their ids only."""
    return tuple(sorted(entries, key=lambda entry: _shuffle_key(f"{seed}:{entry.id}")))


def _shuffle_key(text: str) -> str:
    return sha256(text.encode()).hexdigest()


@transaction.atomic
def submit_reading(
    sample: BlindSample, member: Membership, revision: int, importances: dict[str, int], comment: str = ""
) -> SecondReading:
    """Store a second reading of every aspect of a query.

    Raises BadInput where the member worked on the query, or another person has weighed it in the meantime.
    """
    if revision not in sample.revisions:
        raise BadInput(_("This query is not in the sample."))
    row = AspectRevision.objects.select_related("query").get(pk=revision)
    if AspectRevision.objects.filter(query=row.query, author=member.assessor).exists():
        raise BadInput(_("You worked on this query. Another person must weigh it."))
    own = SecondReading.objects.filter(sample=sample, revision=row, reader=member).first()
    if own is not None and (own.importances, own.comment) == (importances, comment[:5_000]):
        return own  # The same form sent twice.
    if own is not None:
        raise BadInput(
            _(
                "You already weighed this query, perhaps in another window: %(weights)s. What you sent now was not "
                "saved."
            )
            % {"weights": ", ".join(f"{name} {weight}" for name, weight in sorted(own.importances.items()))}
        )
    if set(importances) != {entry.id for entry in load_aspects(row.aspects)}:
        raise BadInput(_("Weigh every aspect of the query."))
    try:
        with transaction.atomic():
            return SecondReading.objects.create(
                sample=sample, revision=row, reader=member, importances=importances, comment=comment[:5_000]
            )
    # A unique constraint allows one reading of each query of a sample.
    except IntegrityError:
        raise BadInput(_("Another person has just weighed this query. Here is the next one.")) from None


def sample_results(sample: BlindSample) -> dict[str, Any]:
    """Return the agreement of the readings with the first weights, and the aspects with the largest differences."""
    readings = list(SecondReading.objects.filter(sample=sample).select_related("revision__query").order_by("revision"))
    weighed = [
        [(reading.revision, entry, reading.importances[entry.id]) for entry in load_aspects(reading.revision.aspects)]
        for reading in readings
    ]
    pairs = [
        [(entry.importance, second) for _revision, entry, second in weighed_aspects] for weighed_aspects in weighed
    ]
    far_apart = [
        aspect
        for weighed_aspects in weighed
        for aspect in weighed_aspects
        if abs(aspect[1].importance - aspect[2]) >= FAR
    ]
    return {
        "agreement": importance_agreement(pairs, seed=sample.seed),
        "drawn": len(sample.revisions),
        "apart": sorted(far_apart, key=lambda aspect: -abs(aspect[1].importance - aspect[2]))[:50],
    }
