"""What makers that ask models share: who is asked, the campaign that keeps a run's calls, its limits, its progress."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _

from benchmark import claims, rankings
from benchmark.making import Stopped, Tell
from benchmark.models import Run
from benchmark.rankings import Ranked
from corpus.errors import BadInput, Incomplete
from corpus.models import Collection, Query
from judges import caps, retrieval
from judges.models import Campaign
from judges.records import Judge, Turn
from judges.retrieval import Answered

ROLES = {Run.Kind.REWRITE: "rewrite", Run.Kind.REASONING: "reason", Run.Kind.DENSE: "embed", Run.Kind.RERANK: "rank"}
LIMITS = ("budget", "max_calls")
BATCH = 64
"""Queries that are asked about together; between two batches a run is stored and tells how far it is."""


def judges_for(kind: str) -> list[str]:
    """Names of the judges that can make a run of this kind."""
    return retrieval.judges_for(ROLES[Run.Kind(kind)])


def judge_of(role: str, recipe: Mapping[str, Any]) -> Judge:
    """The recipe's judge in its present version. Raises BadInput."""
    return retrieval.judge_for(role, str(recipe.get("judge", "")))


def known_keys(recipe: Mapping[str, Any], known: Sequence[str]) -> None:
    """Raises BadInput for a key that no maker of this kind reads."""
    if unknown := sorted(recipe.keys() - {*known, *LIMITS}):
        values = {"unknown": unknown[0], "known": ", ".join([*known, *LIMITS])}
        raise BadInput(_("the recipe has %(unknown)s, which nothing reads; it takes %(known)s") % values)


def limits(collection: Collection, judges: Sequence[Judge], recipe: Mapping[str, Any]) -> dict[str, Any]:
    """`budget` (USD) and `max_calls` of the recipe, where given. Raises BadInput for what cannot be held."""
    budget, calls = recipe.get("budget"), recipe.get("max_calls")
    found: dict[str, Any] = {}
    try:
        found |= {"budget": float(budget)} if budget is not None else {}
        found |= {"max_calls": int(calls)} if calls is not None else {}
    except (TypeError, ValueError):
        raise BadInput(_("budget and max_calls are numbers")) from None
    retrieval.check_limits(collection, judges, found.get("budget"), found.get("max_calls"))
    return found


def campaign_of(run: Run, judges: Sequence[Judge]) -> Campaign:
    """The campaign that keeps the run's calls, opened when it is first worked on. Raises BadInput."""
    if run.campaign is None:
        campaign = retrieval.open_campaign(
            run.collection,
            judges,
            f"run {run.name}",
            budget=run.recipe.get("budget"),
            max_calls=run.recipe.get("max_calls"),
        )
        run.campaign = campaign.pk
        if not claims.held(run).update(campaign=campaign.pk):
            raise claims.Lost(f"run {run.name} was cancelled, or another worker makes it")
    return Campaign.objects.select_related("collection").get(pk=run.campaign)


def raise_limits(run: Run, *, budget: float | None, max_calls: int | None) -> None:
    """Other limits for what the run may spend in all; None: none. `making.go_on` then goes on. Raises BadInput."""
    campaign = None if run.campaign is None else Campaign.objects.get(pk=run.campaign)
    judges = retrieval.judges_in(campaign) if campaign else []
    retrieval.check_limits(run.collection, judges, budget, max_calls)
    recipe = {key: value for key, value in run.recipe.items() if key not in LIMITS}
    recipe |= {key: value for key, value in (("budget", budget), ("max_calls", max_calls)) if value is not None}
    Run.objects.filter(pk=run.pk).update(recipe=recipe)
    if campaign:
        retrieval.set_limits(campaign, budget=budget, max_calls=max_calls)


Batch = Callable[[Sequence[Query]], tuple[Mapping[int, Ranked], Answered]]
"""Rankings of some queries, and what went wrong with those that it leaves out."""


def each_batch(run: Run, work: Batch, progress: Tell, stopped: Stopped, phase: str = "", size: int = BATCH) -> None:
    """Rank every query that has no ranking yet, and store what there is batch by batch.

    Raises Incomplete when the limits are reached, when nobody answers, and in the end when some queries got no answer:
    what there is stays, and going on asks for the rest.
    """
    waiting, total = rankings.unranked(run), len(rankings.queries(run.collection))
    done, failed, error = total - len(waiting), 0, ""
    progress(done, total, phase)
    for begin in range(0, len(waiting), size):
        if stopped():
            return
        batch = waiting[begin : begin + size]
        ranked, found = work(batch)
        rankings.store(run, ranked)
        done, failed, error = done + len(ranked), failed + len(batch) - len(ranked), found.error or error
        progress(done, total, phase)
        if found.stopped:
            return
        check(run, found, answered=bool(ranked))
    if failed:
        told = _("%(failed)s of %(total)s queries got no answer (%(error)s): go on tries them again")
        raise Incomplete(told % {"failed": f"{failed:,}", "total": f"{total:,}", "error": error})


def asked(found: Answered, batch: Sequence[Query]) -> dict[int, tuple[Query, tuple[Turn, ...]]]:
    """The queries that were answered, with their answers."""
    pairs = zip(batch, found.answers, strict=True)
    return {query.pk: (query, turns) for query, turns in pairs if turns is not None}


def check(run: Run, found: Answered, *, answered: bool) -> None:
    """Raises Incomplete when the limits are reached, or when not one of a batch was answered."""
    if found.spent:
        what, how = caps.stopped_words(run.collection, found.spent)
        raise Incomplete(_("stopped by %(what)s: %(how)s") % {"what": what, "how": how})
    if not answered:
        raise Incomplete(_("nobody answers: %(error)s") % {"error": found.error})
