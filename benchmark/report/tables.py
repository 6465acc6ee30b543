"""Download tables of the benchmark's pages, with all rows."""

from collections.abc import Iterable
from typing import Any

from django.utils.text import Truncator
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from benchmark.models import Filling
from benchmark.report.systems.page import SystemPage
from benchmark.report.tabling import CHANGE_FIELDS, change_names
from charts.downloads import Cell as Value
from charts.downloads import DownloadTable
from corpus.models import Query

LENGTH = 160  # Characters of a text beside its id.


def _shorten_text(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= LENGTH else Truncator(words).chars(LENGTH)


def system_tables(page: SystemPage) -> list[DownloadTable]:
    """Return a system's values, changes, holes and cost; only its cost without a report."""
    if page.stored is None:
        return [_cost_table(page)]
    k = page.stored.k
    names: tuple[str, ...] = change_names()
    fields: tuple[str, ...] = CHANGE_FIELDS
    if not page.compares:
        names, fields = (_("value"), *names[3:5], _("rank")), ("after", "low", "high", "rank_after")
    header = (pgettext("column", "measure"), *names)
    rows = tuple((words, *map(value.get, fields)) for _key, words, value in page.values)
    values = DownloadTable("values", _("Values of %(run)s") % {"run": page.run.name}, header, rows)
    header = (_("query"), _("text"), _("before"), _("after"), _("change"))
    rows = tuple(
        (row["query"].external_id, _shorten_text(row["query"].text), row["before"], row["after"], row["change"])
        for row in page.changes
    )
    title = _("Largest changes of nDCG@%(k)s for %(run)s") % {"k": k, "run": page.run.name}
    changes = DownloadTable("changes", title, header, rows, 2)
    header = (_("query"), _("document"), _("title"), _("judged by"), _("rank"), _("grade"))
    rows = tuple(
        (query.external_id, document.external_id, _shorten_text(document.title), origin, rank, grade)
        for query, document, rank, grade, origin, _was_judged in page.holes
    )
    title = _("Holes in the first %(k)s documents of %(run)s") % {"k": k, "run": page.run.name}
    holes = DownloadTable("holes", title, header, rows, 4)
    return [values, changes, holes, _cost_table(page)]


def _cost_table(page: SystemPage) -> DownloadTable:
    run, cost = page.run, page.cost
    rows: list[tuple[str, Value]] = [
        (_("origin"), str(run.get_kind_display())),
        (_("instruction"), run.instruction),
        (pgettext("column", "queries"), cost["queries"]),
        (_("maximum documents per query"), run.depth),
        (_("mean seconds per query"), cost["seconds_per_query"]),
        (_("queries with known time"), cost["timed"]),
        (_("tokens in"), cost["tokens_in"]),
        (_("tokens out"), cost["tokens_out"]),
        (_("calls"), cost["calls"]),
    ]
    if (paid := cost["paid"]) is not None:
        rows.append((_("cost (USD)"), str(paid) if paid.missing else paid.usd))
    # Of a search endpoint its name: its address is for admins.
    rows += [(key, str(value)) for key, value in run.recipe.items() if key != "settings"]
    title = _("Details and cost of %(run)s") % {"run": run.name}
    return DownloadTable("cost", title, (_("what"), _("value")), tuple(rows))


def queries_table(rows: Iterable[dict[str, Any]]) -> DownloadTable:
    """Return queries with counts of their judgments."""
    header = (_("query"), _("text"), _("judged"), _("relevant"), _("holes found"))
    lines = tuple(
        (row["query"].external_id, _shorten_text(row["query"].text), row["judged"], row["relevant"], row["holes"])
        for row in rows
    )
    return DownloadTable("queries", _("Queries and their judged documents"), header, lines, 2)


def side_by_side_table(query: Query, comparison: dict[str, Any], *, with_grades: bool) -> DownloadTable:
    """Return a query's rankings as a table: columns of documents and states by system."""
    header = [_("rank")]
    for column in comparison["columns"]:
        header += [column["run"].name, _("%(run)s: state") % {"run": column["run"].name}]
    states = {"relevant": _("relevant"), "hole": _("hole"), "judged": _("not relevant"), "unjudged": _("unjudged")}
    rows: list[tuple[Value, ...]] = []
    for rank, cells in comparison["rows"]:
        values: list[Value] = [rank]
        for cell in cells:
            if cell is None:
                values += [None, None]
                continue
            grade = f" ({cell['grade']})" if with_grades and cell["grade"] is not None else ""
            values += [cell["document"].external_id, states[cell["state"]] + grade]
        rows.append(tuple(values))
    title = _("Documents returned by each system for query %(query)s") % {"query": query.external_id}
    return DownloadTable("returned", title, tuple(header), tuple(rows), len(header))


def fillings_table(rows: Iterable[Filling]) -> DownloadTable:
    """Return the hole fillings of a collection."""
    header = (_("hole filling"), pgettext("column", "by"), _("state"), pgettext("column", "created"), _("depth"),
              _("unjudged"), _("holes"), _("earlier qrels"),
              _("later qrels"))  # fmt: skip
    lines = tuple(
        (str(filling.number), filling.made_by, filling.get_state_display(), filling.created_at.isoformat(),
         filling.depth,
         filling.funnel.get("candidates"), filling.funnel.get("relevant"), filling.before.number,
         filling.after.number if filling.after else None)
        for filling in rows
    )  # fmt: skip
    return DownloadTable("fillings", _("Hole fillings"), header, lines, 4)
