"""What waits for somebody's decision now, from counters and small indexes."""

from collections.abc import Iterable
from typing import Any

from django.utils.translation import gettext as _

from annotation.label_quality import canaries
from annotation.label_quality.records import Audits, PersonQuality, RouteDecision
from annotation.queue.skipped import skipped_by_all
from corpus.models import Collection, Item

MANY = 1000
"""Counts are exact up to here."""


def decisions(
    collection: Collection,
    status: dict[str, Any],
    *,
    audits: Audits | None,
    people: Iterable[PersonQuality] | None,
    skipped: int | None = None,
    flips: Iterable[canaries.CanaryFlips] = (),
) -> list[RouteDecision]:
    """Alarms first. `status`: the campaign's document; `skipped`: pairs that everybody skipped, where it is known;
    `flips`: what the campaign's judges do with hostile text.

    One statement, two where `skipped` is not given.
    """
    found = [
        *(_over(audits) if audits else ()),
        *_annotators(people or ()),
        *canaries.alarms(flips),
        *_conflicts(collection),
        *_skipped(skipped_by_all(collection).order_by()[:MANY].count() if skipped is None else skipped),
        *_failed(status),
    ]
    return sorted(found, key=lambda one: one.severity != "alarm")


def _over(audits: Audits) -> list[RouteDecision]:
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


def _annotators(people: Iterable[PersonQuality]) -> list[RouteDecision]:
    return [
        RouteDecision("person", "alarm", f"{person.name}: {alarm}.", 1, "people_quality")
        for person in people
        if person.active
        for alarm in person.alarms
    ]


def _conflicts(collection: Collection) -> list[RouteDecision]:
    n = Item.objects.filter(collection=collection, state=Item.State.CONFLICT).order_by()[:MANY].count()
    words = _("%(many)s wait for an adjudicator: annotators differ, or somebody flagged the pair.") % {"many": _many(n)}
    return [RouteDecision("conflicts", "attention", words, n, "pairs", "state=conflict")] if n else []


def _skipped(n: int) -> list[RouteDecision]:
    words = _("%(many)s were skipped by everybody who could judge them.") % {"many": _many(n)}
    return [RouteDecision("skipped", "attention", words, n, "pairs", "state=skipped")] if n else []


def _failed(status: dict[str, Any]) -> list[RouteDecision]:
    n = int(status["failed"])
    words = _("%(n)s pairs failed: retry them, or hand them to people.") % {"n": f"{n:,}"}
    query = f"campaign={status['campaign']}&state=failed"
    return [RouteDecision("failed", "attention", words, n, "pairs", query)] if n else []


def _many(n: int) -> str:
    return (
        _("%(many)s pairs and more") % {"many": f"{MANY:,}"}
        if n >= MANY
        else _("1 pair")
        if n == 1
        else _("%(n)s pairs") % {"n": f"{n:,}"}
    )
