"""The funnels of hole filling over a suite: a row for each member's newest filling, and the total (DREAM table 8)."""

from typing import Any

from django.utils.translation import gettext as _

from benchmark.hole_filling.funnel import Funnel
from benchmark.models import Filling, Suite
from benchmark.suites.groups import collections_of
from charts.downloads import DownloadTable
from corpus.models import Collection


def member_funnels(suite: Suite) -> list[tuple[Collection, Funnel | None]]:
    """Return the members with the funnels of their newest fillings that were not cancelled."""
    members = collections_of(suite)
    rows = Filling.objects.filter(collection__in=members).exclude(state=Filling.State.CANCELLED).order_by("pk")
    # A filling that is still being prepared has no counts yet.
    newest = {row.collection_id: Funnel.of(row) for row in rows.defer("pairs") if row.funnel}
    return [(collection, newest.get(collection.pk)) for collection in members]


def funnel_table(suite: Suite) -> DownloadTable | None:
    """Return the table of the members' funnels; None without any. A total needs all members."""
    funnels = member_funnels(suite)
    round_count = max((len(funnel.rounds) for _collection, funnel in funnels if funnel), default=0)
    if not any(funnel for _collection, funnel in funnels):
        return None
    header = [_("collection"), _("pool"), _("candidates"), _("after filtering")]
    for number in range(1, round_count + 1):
        header += [_("consensus in round %(n)d") % {"n": number}, _("disagreement after round %(n)d") % {"n": number}]
    header += [_("to people"), _("relevant")]
    rows: list[list[Any]] = []
    for _collection, funnel in funnels:
        if funnel is None:
            rows.append([None] * (5 + 2 * round_count))
            continue
        # A debate of fewer rounds has blanks for the later ones.
        rounds: list[int | None] = [counts[name] for counts in funnel.rounds for name in ("agreed", "open")]
        rounds += [None] * (2 * round_count - len(rounds))
        steps = (funnel.pool, funnel.candidates, funnel.after_filter, *rounds, funnel.to_people, funnel.relevant)
        rows.append(list(steps))
    total = [None if None in column else sum(column) for column in zip(*rows, strict=True)]
    names = [collection.name for collection, _funnel in funnels]
    lines = [(name, *row) for name, row in zip([*names, _("total")], [*rows, total], strict=True)]
    title = _("Hole filling on %(suite)s") % {"suite": suite.title or suite.name}
    return DownloadTable(f"{suite.name}-funnel", title, tuple(header), tuple(lines))
