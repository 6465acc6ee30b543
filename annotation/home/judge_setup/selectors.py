"""Context of the page of models: each judge with its key, latest test, cost of a test and role on the panel."""

from typing import Any

from judges.costs.judge_records import records_of
from judges.costs.prices import PAID_BY_CALL, price_for_judge
from judges.models import JudgeVersion, Panel
from judges.models.probes import JudgeProbe
from judges.panels.configuration import has_key
from judges.probes.checks import plan_check, probe_role
from judges.probes.stored import SHOWN


def list_models(panel: Panel) -> list[dict[str, Any]]:
    """Return all configured judges except the offline ones, by name.

    `calls` and `most_cost` (USD) are the most that a test needs; `most_cost` is None where a price is unknown.
    """
    # Each configured judge with its latest probe and findings, which are None if it was never checked.
    # Offline judges need no check and are omitted.
    judges = JudgeVersion.objects.filter(is_current=True).exclude(provider="offline")
    latest_probes = JudgeProbe.objects.filter(judge__in=judges).order_by("judge", "-id").distinct("judge")
    probes = {probe.judge_id: probe for probe in latest_probes}
    findings = {key: {**dict.fromkeys(SHOWN), **probe.found} for key, probe in probes.items()}
    rows: list[dict[str, Any]] = [
        {"judge": judge, "probe": probes.get(judge.pk), "found": findings.get(judge.pk)}
        for judge in judges.order_by("name")
    ]
    models = []
    for abilities, judge in zip(rows, records_of(row["judge"] for row in rows), strict=True):
        calls, cost = plan_check(judge, probe_role(judge))
        optional = not judge.preset.key_required and judge.api_key_env == judge.preset.key_env
        models.append(
            {
                **abilities,
                "has_key": has_key(judge.api_key_env),
                "needs_key": bool(judge.api_key_env) and not optional,
                "calls": calls,
                "most_cost": cost,
                "price": price_for_judge(judge),
                "searches": judge.provider in PAID_BY_CALL,
                "debates": judge.name in panel.debate,
                "votes": judge.name in panel.ensemble,
            }
        )
    return models
