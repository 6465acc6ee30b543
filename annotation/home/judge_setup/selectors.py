"""What the page of models shows: each judge with its key, latest test and role on the panel, and deleted judges."""

from typing import Any

from django.db.models import Q, QuerySet
from django.http import Http404
from django.utils.translation import gettext as _

from judges.costs.judge_records import records_of
from judges.costs.prices import PAID_BY_CALL, price_for_judge
from judges.models import Campaign, JudgeVersion, Panel
from judges.models.keys import StoredKey
from judges.models.probes import JudgeProbe
from judges.panels.configuration import has_key
from judges.panels.file_text import judge_keys, render_keys
from judges.panels.offline_panel import OWN_PANEL
from judges.probes.checks import plan_check, probe_role
from judges.probes.stored import SHOWN
from judges.stored_keys import STORED

# Settings with a field of their own in the form of a model.
FIELDS = (
    "provider", "model", "base_url", "api_key_env", "input_price", "output_price", "cached_input_price",
    "max_concurrency", "requests_per_minute", "tokens_per_minute", "schema_mode", "scale",
)  # fmt: skip
ENDED = (Campaign.State.FINISHED, Campaign.State.CANCELLED)


def list_models(panel: Panel) -> list[dict[str, Any]]:
    """Return all configured judges except the offline ones, which need no test, by name.

    `probe` is the latest test and `found` what it found; both are None if there was no test. `calls` and `most_cost`
    (USD) are the most that a test needs; `most_cost` is None where a price is unknown.
    """
    versions = list(JudgeVersion.objects.filter(is_current=True).exclude(provider="offline").order_by("name"))
    latest_probes = JudgeProbe.objects.filter(judge__in=versions).order_by("judge", "-id").distinct("judge")
    probes = {probe.judge_id: probe for probe in latest_probes}
    names = [version.api_key_env for version in versions if version.api_key_env.startswith(STORED)]
    keys = StoredKey.objects.in_bulk(names, field_name="name") if names else {}
    models = []
    for version, judge in zip(versions, records_of(versions), strict=True):
        probe = probes.get(version.pk)
        calls, cost = plan_check(judge, probe_role(judge))
        is_optional = not judge.preset.key_required and judge.api_key_env == judge.preset.key_env
        models.append(
            {
                "judge": version,
                "probe": probe,
                "found": {**dict.fromkeys(SHOWN), **probe.found} if probe else None,
                "stored_key": keys.get(judge.api_key_env),
                "stores": judge.api_key_env.startswith(STORED),
                "has_key": judge.api_key_env in keys or has_key(judge.api_key_env),
                "needs_key": bool(judge.api_key_env) and not is_optional,
                "calls": calls,
                "most_cost": cost,
                "price": price_for_judge(judge),
                "searches": judge.provider in PAID_BY_CALL,
                "debates": judge.name in panel.debate,
                "votes": judge.name in panel.ensemble,
            }
        )
    return models


def find_judge(number: int) -> JudgeVersion:
    """Return the current version of the model that has the version `number`; of a deleted model its last one.

    Raises Http404.
    """
    version = JudgeVersion.objects.exclude(provider="offline").filter(pk=number).first()
    if version is None:
        raise Http404(_("Model not found."))
    return JudgeVersion.objects.filter(name=version.name).order_by("-is_current", "-version")[0]


def list_deleted() -> QuerySet[JudgeVersion]:
    """Return the last versions of the models that were deleted, by name."""
    versions = JudgeVersion.objects.exclude(provider="offline").order_by("name", "-is_current", "-version")
    last = versions.distinct("name").values("pk")
    return JudgeVersion.objects.filter(pk__in=last, is_current=False).order_by("name")


def initial_options(judge: JudgeVersion) -> dict[str, Any]:
    """Return the options of a model as its form shows them; settings without a field are lines of `more`."""
    keys = judge_keys(judge)
    further_keys = {key: value for key, value in keys.items() if key not in (*FIELDS, "name")}
    values = {key: value for key, value in keys.items() if key in FIELDS}
    if judge.api_key_env.startswith(STORED):
        del values["api_key_env"]
    return {**values, "more": render_keys(further_keys)}


def panels_of_one(name: str) -> QuerySet[Panel]:
    """Return the site's panels that have no other member than this judge."""
    panels = Panel.objects.filter(ensemble__contained_by=[name], debate__contained_by=[name])
    return panels.filter(ensemble__contains=[name], adjudicator__in=["", name]).exclude(name__endswith=OWN_PANEL)


def describe_uses(name: str) -> list[str]:
    """Return a sentence for each use of a judge that prevents its deletion: campaigns that go on, and panels."""
    versions = list(JudgeVersion.objects.filter(name=name).values_list("pk", flat=True))
    uses = Q(debaters__overlap=versions) | Q(voters__overlap=versions) | Q(protocol__adjudicator__in=versions)
    # The filter is an array in JSON, which has no lookup for several values.
    for version in versions:
        uses |= Q(protocol__filter__contains=[version])
    campaigns = Campaign.objects.exclude(state__in=ENDED).filter(uses).select_related("collection")
    words = _("Campaign %(number)s of %(collection)s uses it. Wait for its end, or cancel it.")
    sentences = [words % {"number": campaign.number, "collection": campaign.collection.name} for campaign in campaigns]
    member = Q(ensemble__contains=[name]) | Q(debate__contains=[name]) | Q(adjudicator=name)
    for panel in Panel.objects.filter(member).exclude(pk__in=panels_of_one(name)).order_by("name"):
        # The name of a collection's own panel ends in OWN_PANEL; other panels are from the judges file.
        name_or_collection, is_own, _rest = panel.name.partition(OWN_PANEL)
        words = _("Panel %(panel)s uses it. Take it out of the judges file first.")
        if is_own:
            words = _("The panel of %(panel)s uses it. Choose other judges there first.")
        sentences.append(words % {"panel": name_or_collection})
    return sentences
