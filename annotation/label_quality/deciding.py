"""What waits for somebody's decision now, said from what the page knows already."""

from collections.abc import Iterable, Iterator
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
    """List the decisions that wait, alarms first.

    `status`: the campaign's document; `conflicts`: pairs for an adjudicator; `skipped`: pairs that everybody skipped;
    `flips`: what the campaign's judges do with hostile text.
    """
    found = [
        *(_audit_decisions(audits) if audits else ()),
        *_annotator_decisions(people or ()),
        *canaries.flip_alarms(flips),
        *_pair_decisions(status, conflicts, skipped),
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


def _pair_decisions(status: dict[str, Any], conflicts: int, skipped: int) -> Iterator[RouteDecision]:
    if conflicts:
        words = _("%(many)s wait for an adjudicator: annotators differ, or somebody flagged the pair.")
        words = words % {"many": _format_pair_count(conflicts)}
        yield RouteDecision("conflicts", "attention", words, conflicts, "pairs", "state=conflict")
    if skipped:
        words = _("%(many)s were skipped by everybody who could judge them.") % {"many": _format_pair_count(skipped)}
        yield RouteDecision("skipped", "attention", words, skipped, "pairs", "state=skipped")
    if failed := int(status["failed"]):
        words = _("%(n)s pairs failed: retry them, or hand them to people.") % {"n": f"{failed:,}"}
        query = f"campaign={status['campaign']}&state=failed"
        yield RouteDecision("failed", "attention", words, failed, "pairs", query)


def _format_pair_count(n: int) -> str:
    return (
        _("%(many)s pairs and more") % {"many": f"{MANY:,}"}
        if n >= MANY
        else _("1 pair")
        if n == 1
        else _("%(n)s pairs") % {"n": f"{n:,}"}
    )
