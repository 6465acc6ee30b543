"""What waits for somebody's decision now, said from what the page knows already."""

from collections.abc import Iterable
from typing import Any

from django.utils.translation import gettext as _

from annotation.label_quality import canaries
from annotation.label_quality.records import Audits, PersonQuality, RouteDecision

MANY = 1000  # Counts are exact up to here.


def list_route_decisions(
    status: dict[str, Any],
    *,
    audits: Audits | None,
    people: Iterable[PersonQuality] | None,
    conflicts: int,
    skipped: int,
    flips: Iterable[canaries.CanaryFlips] = (),
) -> list[RouteDecision]:
    """Alarms first. `status`: the campaign's document; `conflicts`: pairs for an adjudicator; `skipped`: pairs
    that everybody skipped; `flips`: what the campaign's judges do with hostile text.
    """
    found = [
        *(_audit_decisions(audits) if audits else ()),
        *_annotator_decisions(people or ()),
        *canaries.flip_alarms(flips),
        *_conflict_decisions(conflicts),
        *_skipped_decisions(skipped),
        *_failed_decisions(status),
    ]
    return sorted(found, key=lambda one: one.severity != "alarm")


def _audit_decisions(audits: Audits) -> list[RouteDecision]:
    return [
        RouteDecision(
            "audit",
            "alarm",
            _(
                "%(settled)s of %(settled2)s audited labels are wrong where judges %(words)s: more than "
                "%(limit)s. Should people judge the other pairs of this route?"
            )
            % {
                "settled": route.settled - route.right,
                "settled2": route.settled,
                "words": route.words,
                "limit": f"{audits.limit:.0%}",
            },
            route.population - route.drawn,
            "audit_to_people",
            query=f"route={route.key}",
            arguments=(audits.campaign,),
        )
        for route in audits.over
    ]


def _annotator_decisions(people: Iterable[PersonQuality]) -> list[RouteDecision]:
    return [
        RouteDecision("person", "alarm", f"{person.name}: {alarm}.", 1, "people_quality")
        for person in people
        if person.active
        for alarm in person.alarms
    ]


def _conflict_decisions(n: int) -> list[RouteDecision]:
    words = _("%(many)s wait for an adjudicator: annotators differ, or somebody flagged the pair.") % {
        "many": _format_pair_count(n)
    }
    return [RouteDecision("conflicts", "attention", words, n, "pairs", "state=conflict")] if n else []


def _skipped_decisions(n: int) -> list[RouteDecision]:
    words = _("%(many)s were skipped by everybody who could judge them.") % {"many": _format_pair_count(n)}
    return [RouteDecision("skipped", "attention", words, n, "pairs", "state=skipped")] if n else []


def _failed_decisions(status: dict[str, Any]) -> list[RouteDecision]:
    n = int(status["failed"])
    words = _("%(n)s pairs failed: retry them, or hand them to people.") % {"n": f"{n:,}"}
    query = f"campaign={status['campaign']}&state=failed"
    return [RouteDecision("failed", "attention", words, n, "pairs", query)] if n else []


def _format_pair_count(n: int) -> str:
    return (
        _("%(many)s pairs and more") % {"many": f"{MANY:,}"}
        if n >= MANY
        else _("1 pair")
        if n == 1
        else _("%(n)s pairs") % {"n": f"{n:,}"}
    )
