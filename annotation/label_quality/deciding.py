"""The alarms that wait for somebody's decision, from what the page knows already."""

from collections.abc import Iterable

from django.utils.translation import gettext as _

from annotation.label_quality import canaries
from annotation.label_quality.records import Audits, PersonQuality, RouteDecision


def list_route_decisions(
    *, audits: Audits | None, people: Iterable[PersonQuality] | None, flips: Iterable[canaries.CanaryFlips] = ()
) -> list[RouteDecision]:
    """List the alarms that wait for a decision. `flips`: what the campaign's judges do with hostile text."""
    return [
        *(_audit_decisions(audits) if audits else ()),
        *_annotator_decisions(people or ()),
        *canaries.flip_alarms(flips),
    ]


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
