"""Filling the holes: start or go on, look how far it is, make the filled version, cancel (DESIGN 10, DREAM 4.1).

A filling is the pool of some runs with what the qrels know taken away. Judges are asked in a campaign over exactly
these pairs, people about what is escalated, or about all. The filled version stands beside the one before: its rows
are taken over, and each settled pair is added with the origin of its label.
"""

from collections.abc import Sequence

import numpy as np
from django.db import connection, transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from benchmark import qrels
from benchmark.filling import people
from benchmark.filling.funnel import Funnel, labels_of, progress
from benchmark.filling.pairs import pairs_of, without_final
from benchmark.filling.planning import configuration, pool_of
from benchmark.models import Filling, Qrels, Run
from benchmark.qrels.reading import Row
from corpus.errors import BadInput
from corpus.models import Collection
from judges import campaigns
from judges.configurations import Configuration
from judges.models import Campaign

State = Filling.State
UNFINISHED = (State.JUDGING, State.PEOPLE)
LOOK_S = 10.0
PAIRS_A_SECOND = 2_000
"""A filling of so many pairs is looked at so many seconds more rarely: counting them takes a few milliseconds."""
DUE = """
UPDATE benchmark_filling SET looked_at = now()
WHERE state IN ('judging', 'people') AND (looked_at IS NULL
    OR looked_at < now() - make_interval(secs => %(least)s + cardinality(pairs) / %(pace)s::float8))
RETURNING id
"""
Pairs = Sequence[tuple[int, int]]
"""Query and document by primary key."""


def start(
    *,
    collection: Collection,
    runs: Sequence[Run],
    depth: int,
    before: Qrels | None = None,
    policy: str = "debate+ensemble",
    panel: str | None = None,
    filters: Sequence[str] = (),
    budget: float | None = None,
    max_calls: int | None = None,
    failed_to_people: bool = False,
    pairs: Pairs | None = None,
    by: str = "",
) -> Filling:
    """Fill `before` (the original where none is given) from the pool of the runs; or go on with an equal filling.

    `policy` "people": an item for each pair and no campaign. `pairs`: only these of the pool, in this order, and people
    get them before everything else. The same call again goes on with the unfinished filling, with new limits; a filled
    one of which nothing changed since is returned as it is. Raises BadInput.
    """
    wanted = configuration(policy, panel, filters)
    if wanted is not None:
        campaigns.check_budget(collection, wanted, budget, max_calls, None)
    with transaction.atomic():
        before = before or qrels.original(collection, by)
        Collection.objects.select_for_update(no_key=True).get(pk=collection.pk)
        ids, counts = _candidates(collection, runs, depth, before, pairs)
        filling = _same(collection, runs, depth, before, wanted, ids)
        if filling is not None and filling.state == State.FILLED:
            return filling
        asked = without_final(ids)
        if filling is None:
            filling = Filling.objects.create(
                collection=collection,
                depth=depth,
                before=before,
                pairs=ids,
                funnel={**counts, "candidates": len(ids), "known": len(ids) - len(asked)},
                made_by=by,
            )
            filling.runs.set(runs)
        if wanted is None:
            people.ask(collection, asked, in_order=pairs is not None)
        else:
            started = campaigns.start_or_join(
                collection=collection,
                wanted=wanted,
                budget=budget,
                max_calls=max_calls,
                failed_to_people=failed_to_people,
                pairs=asked,
                scope=scope_of(filling),
            )
            campaign = started.campaign or next(iter(campaigns.same_configuration(collection, wanted)), None)
            filling.campaign = campaign.pk if campaign else None
            filling.save(update_fields=["campaign"])
        return _stored(filling)


def _candidates(
    collection: Collection, runs: Sequence[Run], depth: int, before: Qrels, pairs: Pairs | None
) -> tuple[list[int], dict[str, int]]:
    """Ids of the unjudged pairs of the pool, or of those chosen from it, and the counts of the pool."""
    pool = pool_of(collection, runs, depth, before)
    queries, documents = pool.candidates
    if pairs is not None:
        unjudged = set(zip(queries.tolist(), documents.tolist(), strict=True))
        chosen = [pair for pair in dict.fromkeys(pairs) if pair in unjudged]
        queries, documents = np.array(chosen, dtype=np.int64).reshape(-1, 2).T
    ids = pairs_of(collection, queries, documents)
    if not ids:
        raise BadInput(
            _("nothing to fill: every pair of the pool is judged in version %(number)s of the qrels")
            % {"number": before.number}
        )
    return ids, {"pool": len(pool), "judged": int(pool.is_judged.sum())}


def _same(
    collection: Collection,
    runs: Sequence[Run],
    depth: int,
    before: Qrels,
    wanted: Configuration | None,
    ids: Sequence[int],
) -> Filling | None:
    """The newest filling of the same pairs by the same policy that goes on, or that is filled and up to date."""
    for filling in _like(collection, depth, before, wanted):
        if set(filling.runs.values_list("pk", flat=True)) != {run.pk for run in runs} or filling.pairs != list(ids):
            continue
        if filling.state in UNFINISHED:
            return filling
        if filling.after is not None and progress(filling).is_done:
            rows = _filled(filling)
            return filling if qrels.content_hash(rows) == filling.after.content_hash else None
        return None
    return None


def _like(
    collection: Collection, depth: int, before: Qrels, wanted: Configuration | None
) -> QuerySet[Filling, Filling]:
    found = Filling.objects.filter(collection=collection, depth=depth, before=before).exclude(state=State.CANCELLED)
    if wanted is None:
        found = found.filter(campaign=None)
    else:
        known = [one.pk for one in campaigns.same_configuration(collection, wanted)]
        found = found.filter(campaign__in=known)
    return found.select_related("collection", "before", "after").order_by("-pk")


def advance(filling: Filling) -> Filling:
    """Store how far it is, and make the filled version once all is settled. Safe to call at any time, by anybody."""
    if filling.state not in UNFINISHED:
        return filling
    filling = _stored(filling)
    if Funnel.of(filling).is_done:
        finish(filling, filling.made_by)
        filling.refresh_from_db()
    return filling


def _stored(filling: Filling) -> Filling:
    """With the funnel of now, and the state that it says."""
    funnel = progress(filling)
    waits_for_people = not funnel.pending and not _is_judging(filling)
    filling.state = State.PEOPLE if waits_for_people else State.JUDGING
    filling.funnel = funnel.document
    rows = Filling.objects.filter(pk=filling.pk, state__in=UNFINISHED)
    rows.update(state=filling.state, funnel=filling.funnel)
    return filling


def _is_judging(filling: Filling) -> bool:
    unfinished = [Campaign.State.RUNNING, Campaign.State.PAUSED, Campaign.State.BUDGET]
    return bool(filling.campaign) and Campaign.objects.filter(pk=filling.campaign or 0, state__in=unfinished).exists()


@transaction.atomic
def finish(filling: Filling, by: str = "") -> Qrels:
    """The filled version of what is settled now; a second call returns the same. Raises BadInput when nothing is.

    Judges and people who still have pairs of it go on: what they say enters the next filling.
    """
    locked = Filling.objects.select_for_update().get(pk=filling.pk)
    if locked.after is not None:
        return locked.after
    if locked.state == State.CANCELLED:
        raise BadInput(_("this filling is cancelled: start it again"))
    funnel = progress(locked)
    if not funnel.settled:
        raise BadInput(_("nothing is settled yet: there is nothing to fill with"))
    locked.after = _version(locked, by)
    locked.state, locked.funnel, locked.ended_at = State.FILLED, funnel.document, timezone.now()
    locked.save(update_fields=["after", "state", "funnel", "ended_at"])
    return locked.after


def _version(filling: Filling, by: str) -> Qrels:
    """A version of its own for each filling."""
    note = _("filled to depth %(depth)s from %(runs)s runs") % {"depth": filling.depth, "runs": filling.runs.count()}
    return qrels.store(
        filling.collection,
        Qrels.Kind.FILLED,
        _filled(filling),
        note=note,
        parent=filling.before,
        by=by,
        once=False,
    )


def _filled(filling: Filling) -> dict[int, Row]:
    """The rows before, with every settled pair added."""
    rows = qrels.load_rows(filling.before)
    added: dict[int, list[tuple[int, int, str]]] = {}
    for query, document, grade, origin in labels_of(filling):
        added.setdefault(query, []).append((document, grade, origin))
    for query, new in added.items():
        old = rows.get(query, Row(np.empty(0, np.int64), np.empty(0, np.int16), []))
        documents = np.concatenate([old.documents, np.array([one[0] for one in new], dtype=np.int64)])
        grades = np.concatenate([old.grades, np.array([one[1] for one in new], dtype=np.int16)])
        origins = [*old.origins, *(one[2] for one in new)]
        order = np.argsort(documents)
        rows[query] = Row(documents[order], grades[order], [origins[at] for at in order])
    return rows


@transaction.atomic
def cancel(filling: Filling) -> None:
    """Ask nobody any more: its campaign is cancelled, and holes that nobody has taken up are withdrawn.

    What was said stays, and counts when it is started again. Raises BadInput for one that is over.
    """
    rows = Filling.objects.filter(pk=filling.pk, state__in=UNFINISHED)
    if not rows.update(state=State.CANCELLED, ended_at=timezone.now()):
        raise BadInput(_("this filling is over already"))
    campaign = Campaign.objects.filter(pk=filling.campaign).first() if filling.campaign else None
    if campaign is None:
        people.withdraw(filling.pairs)
    elif campaign.scope == scope_of(filling) and campaign.state in (*campaigns.UNFINISHED, Campaign.State.PAUSED):
        campaigns.cancel(campaign=campaign)


def scope_of(filling: Filling) -> str:
    """The name of its pairs, for its campaign."""
    return f"filling {filling.pk}"


def advance_due() -> int:
    """Advance the fillings that nobody looked at for a while, which is longer where there is more to count; how many.

    What workers do between their jobs: a filling ends by itself, and pages show a funnel that is seconds old.
    """
    with connection.cursor() as cursor:
        cursor.execute(DUE, {"least": LOOK_S, "pace": PAIRS_A_SECOND})
        due = [key for (key,) in cursor.fetchall()]
    for filling in unfinished().filter(pk__in=due):
        advance(filling)
    return len(due)


def unfinished() -> QuerySet[Filling, Filling]:
    """Fillings that wait for judges or people, oldest first."""
    return Filling.objects.filter(state__in=UNFINISHED).select_related("collection").order_by("pk")
