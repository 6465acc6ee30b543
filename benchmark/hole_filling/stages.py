"""Stages of fillings: progress stored, filled versions made, by pages, by the command, and by workers in between."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from django.db import connection, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from benchmark.hole_filling.funnel import Funnel, compute_funnel, labels_of
from benchmark.hole_filling.pairs import withdraw_tasks
from benchmark.models import Filling, Qrels
from benchmark.qrels import reading, versions
from benchmark.qrels.reading import ReadQrel
from corpus.errors import BadInput
from corpus.holding import hold
from judges.campaigns import lifecycle
from judges.models import Campaign

State = Filling.State
UNFINISHED = (State.JUDGING, State.PEOPLE)
ASKING = (Campaign.State.RUNNING, Campaign.State.PAUSED, Campaign.State.BUDGET)  # Judges are asked, or can be again.
LIVE = 20_000  # Candidates up to which a page counts by itself.
LOOK_S = 10.0
# A filling of so many pairs is looked at a second more rarely: counting 300,000 takes about a second.
PAIRS_A_SECOND = 10_000
# The time is stored by the statement that chooses: two workers that look at once get different fillings.
DUE = """
UPDATE benchmark_filling SET looked_at = now()
WHERE state IN ('judging', 'people') AND (looked_at IS NULL
    OR looked_at < now() - make_interval(secs => %(least)s + cardinality(pairs) / %(pace)s::float8))
RETURNING id
"""


def current_funnel(filling: Filling) -> Funnel:
    """The funnel for a page: counted now, or for a large filling as last counted."""
    last = Funnel.of(filling)
    return compute_funnel(filling) if last.candidates <= LIVE and filling.state in UNFINISHED else last


def advance_filling(filling: Filling) -> Filling:
    """Store how far a filling is; make the filled version once all is settled. Anybody may call it at any time."""
    if filling.state not in UNFINISHED:
        return filling
    filling = store_funnel(filling)
    if Funnel.of(filling).is_done:
        finish_filling(filling, filling.made_by)
        filling.refresh_from_db()
    return filling


def store_funnel(filling: Filling) -> Filling:
    """Store the funnel as it is now, and the state that it says."""
    funnel = compute_funnel(filling)
    asking = Campaign.objects.filter(pk=filling.campaign or 0, state__in=ASKING)
    waits_for_people = not funnel.pending and not asking.exists()
    filling.state = State.PEOPLE if waits_for_people else State.JUDGING
    filling.funnel = funnel.document
    # Conditional: somebody may have finished or cancelled it while the funnel was counted.
    rows = Filling.objects.filter(pk=filling.pk, state__in=UNFINISHED)
    # A filling that ended meanwhile keeps its last funnel.
    rows.update(state=filling.state, funnel=filling.funnel)
    return filling


@transaction.atomic
def finish_filling(filling: Filling, by: str = "") -> Qrels:
    """The filled version of what is settled now; a second call returns the same. Raises BadInput when nothing is."""
    # The lock makes a second call wait, and find the version that the first one made.
    locked = hold(Filling.objects.select_related("collection", "before", "after"), filling.pk)
    if locked.after is not None:
        return locked.after
    if locked.state == State.CANCELLED:
        raise BadInput(_("This hole filling was cancelled. Start a new one"))
    funnel = compute_funnel(locked)
    if not funnel.settled:
        raise BadInput(_("No pair is resolved yet, so a version cannot be created"))
    locked.after = make_version(locked, by)
    locked.state, locked.funnel, locked.ended_at, locked.error = State.FILLED, funnel.document, timezone.now(), ""
    locked.save(update_fields=["after", "state", "funnel", "ended_at", "error"])
    return locked.after


def filled_rows(filling: Filling) -> dict[int, ReadQrel]:
    """The rows of the filled version by query: those before, with what is settled now."""
    rows = reading.load_rows(filling.before)
    added: dict[int, list[tuple[int, int, str]]] = {}
    for query, document, grade, origin in labels_of(filling):
        added.setdefault(query, []).append((document, grade, origin))
    for query, new in added.items():
        old = rows.get(query, ReadQrel(np.empty(0, np.int64), np.empty(0, np.int16), []))
        documents = np.concatenate([old.documents, np.array([one[0] for one in new], dtype=np.int64)])
        grades = np.concatenate([old.grades, np.array([one[1] for one in new], dtype=np.int16)])
        origins = [*old.origins, *(one[2] for one in new)]
        # Ascending documents, as every version is stored.
        order = np.argsort(documents)
        rows[query] = ReadQrel(documents[order], grades[order], [origins[at] for at in order])
    return rows


def is_current(filling: Filling) -> bool:
    """Return whether the stored filled version equals the one that today's judgments would give."""
    return filling.after is not None and versions.content_hash(filled_rows(filling)) == filling.after.content_hash


def make_version(filling: Filling, by: str) -> Qrels:
    """Store the filled version: one of its own for each filling, even if another holds the same."""
    kind, rows = Qrels.Kind.FILLED, filled_rows(filling)
    # A version of its own even where the newest holds the same: `Filling.after` is one to one.
    return versions.store_version(filling.collection, kind, rows, parent=filling.before, by=by, once=False)


@transaction.atomic
def ask_to_finish(filling: Filling, by: str = "") -> bool:
    """Finish a small filling now, and have a worker finish a large one. Raises BadInput.

    Returns whether this call did it: False where somebody asked for it before, or it had ended by itself.
    """
    if Funnel.of(filling).candidates <= LIVE:
        # The lock makes a second call wait, and see what the first one made.
        is_new = hold(Filling.objects.only("after"), filling.pk).after_id is None
        finish_filling(filling, by)
        return is_new
    # A state of its own lets a worker take it up, and keeps others from finishing it meanwhile.
    wish = {"state": State.FINISHING, "error": "", "options": {**filling.options, "finished_by": by}}
    if not Filling.objects.filter(pk=filling.pk, state__in=UNFINISHED).update(**wish):
        filling.refresh_from_db(fields=["state"])
        if filling.state in (State.PREPARING, State.CANCELLED):
            raise BadInput(_("This hole filling is %(state)s") % {"state": filling.get_state_display()})
        return False
    return True


def finish_requested(key: int) -> bool:
    """Make the filled version that was asked for; what fails goes on being judged and says why."""

    def finish(filling: Filling) -> None:
        finish_filling(filling, filling.options.get("finished_by", ""))

    failed = {"state": State.JUDGING}
    return claim_and_act(key, State.FINISHING, finish, failed, failed, "The filled version was not made: ")


def claim_and_act(
    key: int,
    state: str,
    act: Callable[[Filling], object],
    refused: Mapping[str, Any],
    failed: Mapping[str, Any],
    problem: str = "",
) -> bool:
    """Act on a filling that waits for a worker in a state, unless another worker does; whether that was done here.

    `refused` and `failed` are stored beside the error for bad input and for anything else, which is
    raised again. Killed on the way: nothing is stored, and the next worker begins anew.
    """
    waiting = Filling.objects.filter(pk=key, state=state)
    try:
        with transaction.atomic():
            # Locked rows belong to another worker, so they are passed over and not waited for.
            rows = waiting.select_for_update(skip_locked=True, of=("self",)).select_related("collection", "before")
            filling = rows.defer("pairs").first()
            if filling is None:
                return False
            act(filling)
    # Outside the transaction that failed, or what went wrong could not be stored.
    except BadInput as error:
        waiting.update(error=f"{problem}{error}", **refused)
    except Exception as error:
        waiting.update(error=f"{problem}Unexpected error: {error}", **failed)
        raise
    return True


@transaction.atomic
def cancel_filling(filling: Filling) -> None:
    """Cancel a filling: its campaign is cancelled, and holes that nobody has taken up are withdrawn.

    What was said stays, and counts when it is started again. Raises BadInput for one that is over.
    """
    rows = Filling.objects.filter(pk=filling.pk, state__in=(State.PREPARING, *UNFINISHED))
    if not rows.update(state=State.CANCELLED, ended_at=timezone.now()):
        raise BadInput(_("This hole filling has already ended"))
    filling.refresh_from_db()
    campaign = Campaign.objects.filter(pk=filling.campaign).first() if filling.campaign else None
    if campaign is None:
        withdraw_tasks(filling.pairs)
    elif campaign.scope == scope_of(filling) and campaign.state in (*lifecycle.UNFINISHED, Campaign.State.PAUSED):
        lifecycle.cancel(campaign=campaign)


def scope_of(filling: Filling) -> str:
    """Return the name under which a filling's campaign keeps its pairs."""
    return f"filling {filling.pk}"


def due_fillings() -> list[Filling]:
    """Fillings that nobody looked at for a while, which is longer where there is more to count."""
    with connection.cursor() as cursor:
        cursor.execute(DUE, {"least": LOOK_S, "pace": PAIRS_A_SECOND})
        keys = [key for (key,) in cursor.fetchall()]
    rows = Filling.objects.filter(pk__in=keys, state__in=UNFINISHED).select_related("collection").defer("pairs")
    return list(rows.order_by("pk"))
