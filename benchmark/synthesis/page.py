"""What the pages of syntheses show: the list, one synthesis with its bundles and dropped seeds, and their tables."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.core.paginator import Page, Paginator
from django.db.models import Count, QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from benchmark.models import Synthesis, SyntheticBundle
from benchmark.synthesis.conversation import NEAR_DUPLICATE
from benchmark.synthesis.lifecycle import describe_synthesis
from benchmark.synthesis.queries import PRESENT
from charts.downloads import DownloadTable
from judges.models import JudgeCall

ROWS = 25
LONGEST = 160  # Characters of a text in a downloaded table.


@dataclass(frozen=True, slots=True)
class SynthesisPage:
    """The data of a synthesis's page: the outcome, a page of its bundles, and the dropped seeds."""

    synthesis: Synthesis
    told: dict[str, Any]
    bundles: Page[SyntheticBundle]
    dropped: Sequence[dict[str, Any]]  # The number of `bundles` by `step` and `reason`, in words.
    examples: Sequence[SyntheticBundle]  # The first dropped seeds.


def show_synthesis(synthesis: Synthesis, number: str | None) -> SynthesisPage:
    """Return the data of a synthesis's page, with page `number` of its bundles."""
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
    """Return the seeds with a bundle, in order."""
    return SyntheticBundle.objects.filter(synthesis=synthesis, bundle__isnull=False).order_by("place")


def name_reason(reason: str) -> str:
    """Return in words why a bundle was dropped."""
    if reason == NEAR_DUPLICATE:
        return _("every negative nearly equals a positive")
    if reason == PRESENT:
        return _("a query was written from it before")
    return str(dict(JudgeCall.Outcome.choices).get(reason, reason))


def synthesis_tables(synthesis_page: SynthesisPage) -> list[DownloadTable]:
    """Return the tables of all bundles and of the dropped ones, for download."""
    dropped = tuple(
        (dropped_row["step"], dropped_row["reason"], dropped_row["bundles"]) for dropped_row in synthesis_page.dropped
    )
    if synthesis_page.synthesis.kind != Synthesis.Product.BUNDLES:
        names = (pgettext("column", "step"), _("reason"), _("seeds"))
        written_rows = made_rows(synthesis_page.synthesis)
        query_rows = tuple((row.seed_id, row.bundle["query"]) for row in written_rows if row.bundle is not None)
        return [
            DownloadTable("queries", _("Written queries"), (_("seed"), _("query")), query_rows, 2),
            DownloadTable("dropped", _("Seeds without a new query"), names, dropped, 2),
        ]
    header = (_("seed"), _("query"), _("type"), _("positives"), _("negatives"))
    rows = tuple(
        (
            row.seed_id,
            " ".join(row.bundle["query"].split())[:LONGEST],
            row.bundle["type"],
            len(row.bundle["positives"]),
            len(row.bundle["negatives"]),
        )
        for row in made_rows(synthesis_page.synthesis)
        if row.bundle is not None
    )
    names = (pgettext("column", "step"), _("reason"), _("bundles"))
    return [
        DownloadTable("bundles", _("Synthetic bundles"), header, rows, 3),
        DownloadTable("dropped", _("Dropped bundles"), names, dropped, 2),
    ]


def syntheses_table(rows: Iterable[Synthesis]) -> DownloadTable:
    """Return the table of a collection's syntheses; `rows` have the numbers of their outcomes."""
    header = (
        _("synthesis"), _("type"), _("models"), pgettext("column", "by"), _("state"), pgettext("column", "created"),
        _("seeds"), pgettext("column", "queries"), _("dropped"),
    )  # fmt: skip
    lines = []
    for synthesis in rows:
        counted: Any = synthesis  # With the counts that `list_syntheses` adds.
        models = ", ".join(
            dict.fromkeys((synthesis.options["judge"], synthesis.options.get("writer") or synthesis.options["judge"]))
        )
        kind, state = str(synthesis.get_kind_display()), str(synthesis.get_state_display())
        names = (str(synthesis.number), kind, models, synthesis.made_by, state, synthesis.created_at.isoformat())
        lines.append((*names, synthesis.total, counted.made, counted.dropped))
    return DownloadTable("syntheses", _("Synthetic queries"), header, tuple(lines), 6)
