"""Stages of fillings: pages, the command and workers store their progress, finish and cancel them."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from benchmark.hole_filling.funnel import Funnel, compute_funnel, labels_of
from benchmark.hole_filling.pairs import WITHDRAW
from benchmark.models import Filling, Qrels
from benchmark.qrels import reading, versions
from benchmark.qrels.reading import ReadQrel
from corpus.errors import BadInput
from corpus.holding import hold
from judges.campaigns import lifecycle
from judges.models import Campaign
from store.sql import execute

State = Filling.State
UNFINISHED = (State.JUDGING, State.PEOPLE)
ASKING = (Campaign.State.RUNNING, Campaign.State.PAUSED, Campaign.State.BUDGET)  # Judges may still be asked.
LIVE = 20_000  # Fillings of up to so many candidates are counted while a page waits.
LOOK_S = 10.0
# Each so many pairs add a second to the time between two counts: counting 300,000 takes about a second.
PAIRS_A_SECOND = 10_000
# One statement selects and stores the time, so that two workers at once get different fillings.
DUE = """
UPDATE benchmark_filling SET looked_at = now()
WHERE state IN ('judging', 'people') AND (looked_at IS NULL
    OR looked_at < now() - make_interval(secs => %(least)s + cardinality(pairs) / %(pace)s::float8))
RETURNING id
"""


def current_funnel(filling: Filling) -> Funnel:
    """Return the funnel for a page: counted now, or as last stored for a large filling."""
    stored = Funnel.of(filling)
    return compute_funnel(filling) if stored.candidates <= LIVE and filling.state in UNFINISHED else stored


def advance_filling(filling: Filling) -> Filling:
    """Store the progress of a filling, and finish it once all pairs are settled. Safe to call at any time."""
    if filling.state not in UNFINISHED:
        return filling
    filling = store_funnel(filling)
    if Funnel.of(filling).is_done:
        finish_filling(filling, filling.made_by)
        filling.refresh_from_db()
    return filling


def store_funnel(filling: Filling) -> Filling:
    """Store the current funnel, and the state that follows from it."""
    funnel = compute_funnel(filling)
    active_campaigns = Campaign.objects.filter(pk=filling.campaign or 0, state__in=ASKING)
    waits_for_people = not funnel.pending and not active_campaigns.exists()
    filling.state = State.PEOPLE if waits_for_people else State.JUDGING
    filling.funnel = funnel.document
    # Conditional, since it may have been finished or cancelled while the funnel was counted.
    rows = Filling.objects.filter(pk=filling.pk, state__in=UNFINISHED)
    rows.update(state=filling.state, funnel=filling.funnel)
    return filling


@transaction.atomic
def finish_filling(filling: Filling, by: str = "") -> Qrels:
    """Make the filled version of the settled pairs, or return the one made before. Raises BadInput without any."""
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
    """Return the rows of the filled version by query: those of the version before, and the settled pairs."""
    rows = reading.load_rows(filling.before)
    added: dict[int, list[tuple[int, int, str]]] = {}
    for query, document, grade, origin in labels_of(filling):
        added.setdefault(query, []).append((document, grade, origin))
    for query, labels in added.items():
        before = rows.get(query, ReadQrel(np.empty(0, np.int64), np.empty(0, np.int16), []))
        documents = np.concatenate([before.documents, np.array([label[0] for label in labels], dtype=np.int64)])
        grades = np.concatenate([before.grades, np.array([label[1] for label in labels], dtype=np.int16)])
        origins = [*before.origins, *(label[2] for label in labels)]
        # Every version is stored with ascending documents.
        order = np.argsort(documents)
        rows[query] = ReadQrel(documents[order], grades[order], [origins[position] for position in order])
    return rows


def is_current(filling: Filling) -> bool:
    """Return whether the stored filled version equals one made from the current judgments."""
    return filling.after is not None and versions.content_hash(filled_rows(filling)) == filling.after.content_hash


def make_version(filling: Filling, by: str) -> Qrels:
    """Store the filled version, even if it equals another one."""
    kind, rows = Qrels.Kind.FILLED, filled_rows(filling)
    # Each filling has its own version, since `Filling.after` is one to one.
    return versions.store_version(filling.collection, kind, rows, parent=filling.before, by=by, once=False)


@transaction.atomic
def ask_to_finish(filling: Filling, by: str = "") -> bool:
    """Finish a small filling now, or have a worker finish a large one. Raises BadInput.

    Return whether this call did so: False if it was asked for before, or if the filling had already ended.
    """
    if Funnel.of(filling).candidates <= LIVE:
        # The lock makes a second call wait, and see what the first one made.
        is_new = hold(Filling.objects.only("after"), filling.pk).after_id is None
        finish_filling(filling, by)
        return is_new
    # The state tells workers to finish it, and keeps others from doing so meanwhile.
    columns = {"state": State.FINISHING, "error": "", "options": {**filling.options, "finished_by": by}}
    if not Filling.objects.filter(pk=filling.pk, state__in=UNFINISHED).update(**columns):
        filling.refresh_from_db(fields=["state"])
        if filling.state in (State.PREPARING, State.CANCELLED):
            raise BadInput(_("This hole filling is %(state)s") % {"state": filling.get_state_display()})
        return False
    return True


def finish_requested(key: int) -> bool:
    """Make the filled version that was asked for; after an error the filling is judged further and shows the error.

    Return whether this worker did so.
    """

    def finish(filling: Filling) -> None:
        finish_filling(filling, filling.options.get("finished_by", ""))

    judging = {"state": State.JUDGING}
    return claim_and_act(key, State.FINISHING, finish, judging, judging, "The filled version was not made: ")


def claim_and_act(
    key: int,
    state: str,
    act: Callable[[Filling], object],
    refused: Mapping[str, Any],
    failed: Mapping[str, Any],
    problem: str = "",
) -> bool:
    """Act on a filling that waits for a worker in `state`; return whether no other worker was faster.

    The columns `refused` are stored with the message of a BadInput; `failed` with that of any other
    error, which is raised again. A worker that is killed stores nothing, and the next one starts over.
    """
    pending_rows = Filling.objects.filter(pk=key, state=state)
    try:
        with transaction.atomic():
            # Locked rows belong to another worker and are skipped.
            rows = pending_rows.select_for_update(skip_locked=True, of=("self",)).select_related("collection", "before")
            filling = rows.defer("pairs").first()
            if filling is None:
                return False
            act(filling)
    # Outside the failed transaction, in which nothing could be stored.
    except BadInput as error:
        pending_rows.update(error=f"{problem}{error}", **refused)
    except Exception as error:
        pending_rows.update(error=f"{problem}Unexpected error: {error}", **failed)
        raise
    return True


@transaction.atomic
def cancel_filling(filling: Filling) -> None:
    """Cancel a filling with its campaign, and withdraw the tasks that nobody has started.

    Judgments stay, and count when the filling is started again. Raises BadInput if it has ended.
    """
    rows = Filling.objects.filter(pk=filling.pk, state__in=(State.PREPARING, *UNFINISHED))
    if not rows.update(state=State.CANCELLED, ended_at=timezone.now()):
        raise BadInput(_("This hole filling has already ended"))
    filling.refresh_from_db()
    campaign = Campaign.objects.filter(pk=filling.campaign).first() if filling.campaign else None
    if campaign is None:
        # The `hole` tasks of these pairs that nobody has started.
        execute(WITHDRAW, pairs=list(filling.pairs))
    elif campaign.scope == scope_of(filling) and campaign.state in (*lifecycle.UNFINISHED, Campaign.State.PAUSED):
        lifecycle.cancel(campaign=campaign)


def scope_of(filling: Filling) -> str:
    """Return the scope of a filling's campaign, which limits it to the filling's pairs."""
    return f"filling {filling.pk}"
