"""Limits of a run that asks models: what it may spend (`budget`, USD) and how often it may ask (`max_calls`)."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _

from benchmark.models import Run
from corpus.errors import BadInput
from corpus.models import Collection
from judges.models import Campaign
from judges.records import Judge
from judges.retrieval import model_requests
from judges.retrieval.job_campaigns import LIMITS


def without_limits(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """The recipe's other keys: what the run is, whatever it may spend."""
    return {key: value for key, value in recipe.items() if key not in LIMITS}


def validate_limits(collection: Collection, judges: Sequence[Judge], recipe: Mapping[str, Any]) -> dict[str, Any]:
    """`budget` (USD) and `max_calls` of the recipe, where given. Raises BadInput for what cannot be held."""
    budget, calls = recipe.get("budget"), recipe.get("max_calls")
    found: dict[str, Any] = {}
    try:
        found |= {"budget": float(budget)} if budget is not None else {}
        found |= {"max_calls": int(calls)} if calls is not None else {}
    except (TypeError, ValueError):
        raise BadInput(_("Budget and max_calls must be numbers")) from None
    model_requests.check_limits(collection, judges, found.get("budget"), found.get("max_calls"))
    return found


def set_limits(run: Run, *, budget: float | None, max_calls: int | None) -> None:
    """Set what the run may spend in all; None: no limit. `builders.go_on` then goes on. Raises BadInput."""
    campaign = None if run.campaign is None else Campaign.objects.get(pk=run.campaign)
    judges = model_requests.judges_in(campaign) if campaign else []
    model_requests.check_limits(run.collection, judges, budget, max_calls)
    recipe = without_limits(run.recipe)
    recipe |= {key: value for key, value in (("budget", budget), ("max_calls", max_calls)) if value is not None}
    Run.objects.filter(pk=run.pk).update(recipe=recipe)
    if campaign:
        model_requests.set_limits(campaign, budget=budget, max_calls=max_calls)
