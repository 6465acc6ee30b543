"""The pages of syntheses: the list, one with its bundles and what was dropped, one bundle."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.core.paginator import Page, Paginator
from django.db.models import Count, Q, QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from benchmark.models import Synthesis, SyntheticBundle
from benchmark.synthesis.conversation import NEAR_DUPLICATE
from benchmark.synthesis.lifecycle import describe_synthesis
from benchmark.synthesis.queries import PRESENT
from charts.downloads import DownloadTable
from corpus.models import Collection
from judges.models import JudgeCall

ROWS = 25
LONGEST = 160  # Characters of a text in a table to save.


@dataclass(frozen=True, slots=True)
class SynthesisPage:
    """Data of a synthesis's page: the outcome, a page of its bundles, and what was dropped."""

    synthesis: Synthesis
    told: dict[str, Any]
    bundles: Page[SyntheticBundle]
    dropped: Sequence[dict[str, Any]]  # How many `bundles` at which `step` for which `reason`, in words.
    examples: Sequence[SyntheticBundle]  # Of what was dropped, the first ones.


def list_syntheses(collection: Collection) -> QuerySet[Synthesis]:
    """The syntheses of a collection, newest first, with how much came of each."""
    return (
        Synthesis.objects.filter(collection=collection)
        .annotate(
            made=Count("bundles", filter=Q(bundles__bundle__isnull=False)),
            dropped=Count("bundles", filter=~Q(bundles__step="") & ~Q(bundles__reason=PRESENT)),
        )
        .order_by("-pk")
    )


def show_synthesis(synthesis: Synthesis, number: str | None) -> SynthesisPage:
    """A synthesis with the page `number` of its bundles."""
    rows, steps = made_rows(synthesis), dict(JudgeCall.Role.choices)
    dropped = SyntheticBundle.objects.filter(synthesis=synthesis).exclude(step="").order_by("place")
    counted = dropped.order_by().values_list("step", "reason").annotate(n=Count("pk")).order_by("-n", "step")
    return SynthesisPage(
        synthesis,
        describe_synthesis(synthesis),
        Paginator(rows, ROWS).get_page(number),
        [
            {"step": str(steps.get(step, step)), "reason": name_reason(reason), "bundles": n}
            for step, reason, n in counted
        ],
        list(dropped.exclude(problem="")[:5]),
    )


def made_rows(synthesis: Synthesis) -> QuerySet[SyntheticBundle]:
    """Return the seeds that have their bundle, in order."""
    return SyntheticBundle.objects.filter(synthesis=synthesis, bundle__isnull=False).order_by("place")


def name_reason(reason: str) -> str:
    """Return why a bundle was dropped, in words."""
    if reason == NEAR_DUPLICATE:
        return _("every negative nearly equals a positive")
    if reason == PRESENT:
        return _("a query was written from it before")
    return str(dict(JudgeCall.Outcome.choices).get(reason, reason))


def synthesis_tables(found: SynthesisPage) -> list[DownloadTable]:
    """The bundles and what was dropped, uncut."""
    dropped = tuple((one["step"], one["reason"], one["bundles"]) for one in found.dropped)
    if found.synthesis.kind != Synthesis.Product.BUNDLES:
        names = (pgettext("column", "step"), _("reason"), _("seeds"))
        made = made_rows(found.synthesis)
        written = tuple((one.seed_id, one.bundle["query"]) for one in made if one.bundle is not None)
        return [
            DownloadTable("queries", _("Written queries"), (_("seed"), _("query")), written, 2),
            DownloadTable("dropped", _("Seeds without a new query"), names, dropped, 2),
        ]
    header = (_("seed"), _("query"), _("type"), _("positives"), _("negatives"))
    rows = tuple(
        (
            one.seed_id,
            " ".join(one.bundle["query"].split())[:LONGEST],
            one.bundle["type"],
            len(one.bundle["positives"]),
            len(one.bundle["negatives"]),
        )
        for one in made_rows(found.synthesis)
        if one.bundle is not None
    )
    names = (pgettext("column", "step"), _("reason"), _("bundles"))
    return [
        DownloadTable("bundles", _("Synthetic bundles"), header, rows, 3),
        DownloadTable("dropped", _("Dropped bundles"), names, dropped, 2),
    ]


def syntheses_table(rows: Iterable[Synthesis]) -> DownloadTable:
    """The syntheses of a collection, as `list_syntheses` gives them."""
    header = (
        _("synthesis"), _("type"), _("models"), pgettext("column", "by"), _("state"), pgettext("column", "created"),
        _("seeds"), pgettext("column", "queries"), _("dropped"),
    )  # fmt: skip
    lines = []
    for one in rows:
        counted: Any = one  # annotated
        models = ", ".join(dict.fromkeys((one.options["judge"], one.options.get("writer") or one.options["judge"])))
        kind, state = str(one.get_kind_display()), str(one.get_state_display())
        named = (str(one.number), kind, models, one.made_by, state, one.created_at.isoformat())
        lines.append((*named, one.total, counted.made, counted.dropped))
    return DownloadTable("syntheses", _("Synthetic queries"), header, tuple(lines), 6)
