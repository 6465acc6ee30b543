"""Tags of a collection's first steps: files, who judges, the first campaign. Nothing is shown after a campaign."""

from typing import Any

from django import template
from django.template.context import Context

from corpus.models import Collection
from judges.models import Campaign, JudgeVersion
from judges.panels.offline_panel import JUDGE_NOTHING, OFFLINE

register = template.Library()


@register.inclusion_tag("first_steps/_steps.html", takes_context=True)
def first_steps(context: Context, step: int, next: bool = False) -> dict[str, Any]:
    """Show the three steps, of which `step` (1 to 3) is the page's; `next`: with a button to the next one."""
    collection = context["scope"].collection
    if collection is not None and _has_begun(collection):
        return {"step": 0}
    return {
        "step": step,
        "collection": collection,
        "next": next,
        "may_go_on": step == 2 and _has_model() and collection.pair_set.exists(),
    }


@register.inclusion_tag("first_steps/_who_judges.html", takes_context=True)
def who_judges(context: Context) -> dict[str, Any]:
    """Offer the ways to judge a collection's pairs: by a model, by people only, or offline for a trial."""
    scope = context["scope"]
    return {
        "scope": scope,
        "has_model": _has_model(),
        "offline": OFFLINE,
        "policy": Campaign.Policy.DEBATE_ENSEMBLE.value,
        "csrf_token": context["csrf_token"],
    }


@register.filter
def has_begun(collection: Collection) -> bool:
    """Return whether the collection had a campaign."""
    return _has_begun(collection)


def _has_begun(collection: Collection) -> bool:
    return Campaign.judging.filter(collection=collection).exists()


def _has_model() -> bool:
    """Return whether a model that can judge was added to the site; the offline judges are none."""
    return JudgeVersion.objects.filter(is_current=True).exclude(provider__in=[OFFLINE, *JUDGE_NOTHING]).exists()
