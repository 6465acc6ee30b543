"""Tables to save of the pages that show rows, uncut."""

from collections.abc import Iterable, Mapping
from typing import Any

from django.utils.text import Truncator
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from benchmark.models import Filling, Qrels, Run
from benchmark.report.tabling import CHANGE_FIELDS, change_names
from benchmark.systems.page import SystemPage
from charts.downloads import Cell as Value
from charts.downloads import DownloadTable
from corpus.models import Query

LENGTH = 160  # Letters of a text beside its id.


def _shorten_text(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= LENGTH else Truncator(words).chars(LENGTH)


def runs_table(rows: Iterable[Run]) -> DownloadTable:
    """The runs of a collection."""
    since, queries = pgettext("column", "created"), pgettext("column", "queries")
    made = (_("origin"), pgettext("column", "by"))
    header = (_("system"), *made, _("state"), since, _("depth"), queries)
    lines = tuple(
        (run.name, run.get_kind_display(), run.made_by, run.get_state_display(), run.created_at.isoformat(), run.depth,
         run.done)
        for run in rows
    )  # fmt: skip
    return DownloadTable("runs", _("Runs"), header, lines, 5)


def system_tables(found: SystemPage) -> list[DownloadTable]:
    """A system's values, changes, holes and cost; the last alone where no report knows it."""
    if found.stored is None:
        return [_cost_table(found)]
    k = found.stored.k
    names: tuple[str, ...] = change_names()
    fields: tuple[str, ...] = CHANGE_FIELDS
    if not found.compares:
        names, fields = (_("value"), *names[3:5], _("rank")), ("after", "low", "high", "rank_after")
    header = (pgettext("column", "measure"), *names)
    rows = tuple((words, *map(value.get, fields)) for _key, words, value in found.values)
    values = DownloadTable("values", _("Values of %(run)s") % {"run": found.run.name}, header, rows)
    return [values, _changes_table(found, k), _holes_table(found, k), _cost_table(found)]


def _changes_table(found: SystemPage, k: int) -> DownloadTable:
    header = (_("query"), _("text"), _("before"), _("after"), _("change"))
    rows = tuple(
        (one["query"].external_id, _shorten_text(one["query"].text), one["before"], one["after"], one["change"])
        for one in found.changes
    )
    title = _("Largest changes of nDCG@%(k)s for %(run)s") % {"k": k, "run": found.run.name}
    return DownloadTable("changes", title, header, rows, 2)


def _holes_table(found: SystemPage, k: int) -> DownloadTable:
    header = (_("query"), _("document"), _("title"), _("judged by"), _("rank"), _("grade"))
    rows = []
    for query, document, rank, grade, origin, _was_judged in found.holes:
        named = (query.external_id, document.external_id, _shorten_text(document.title))
        rows.append((*named, origin, rank, grade))
    title = _("Holes in the first %(k)s documents of %(run)s") % {"k": k, "run": found.run.name}
    return DownloadTable("holes", title, header, tuple(rows), 4)


def _cost_table(found: SystemPage) -> DownloadTable:
    run, cost = found.run, found.cost
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
    rows += [(key, str(value)) for key, value in run.recipe.items()]
    title = _("Details and cost of %(run)s") % {"run": run.name}
    return DownloadTable("cost", title, (_("what"), _("value")), tuple(rows))


def queries_table(rows: Iterable[dict[str, Any]]) -> DownloadTable:
    """Queries with how much of each is judged."""
    header = (_("query"), _("text"), _("judged"), _("relevant"), _("holes found"))
    lines = tuple(
        (one["query"].external_id, _shorten_text(one["query"].text), one["judged"], one["relevant"], one["holes"])
        for one in rows
    )
    return DownloadTable("queries", _("Queries and their judged documents"), header, lines, 2)


def side_by_side_table(query: Query, found: dict[str, Any], *, with_grades: bool) -> DownloadTable:
    """Return a query's rankings as a table: columns of documents and states by system."""
    header = [_("rank")]
    for column in found["columns"]:
        header += [column["run"].name, _("%(run)s: state") % {"run": column["run"].name}]
    rows: list[tuple[Value, ...]] = [
        (rank, *(value for cell in cells for value in _describe_cell(cell, with_grades=with_grades)))
        for rank, cells in found["rows"]
    ]
    title = _("Documents returned by each system for query %(query)s") % {"query": query.external_id}
    return DownloadTable("returned", title, tuple(header), tuple(rows), len(header))


def _describe_cell(cell: Mapping[str, Any] | None, *, with_grades: bool) -> tuple[Value, Value]:
    """The document's id, and what it is in words."""
    if cell is None:
        return None, None
    words = {"relevant": _("relevant"), "hole": _("hole"), "judged": _("not relevant"), "unjudged": _("unjudged")}
    grade = f" ({cell['grade']})" if with_grades and cell["grade"] is not None else ""
    return cell["document"].external_id, words[cell["state"]] + grade


def fillings_table(rows: Iterable[Filling]) -> DownloadTable:
    """Fillings of a collection."""
    header = (_("hole filling"), pgettext("column", "by"), _("state"), pgettext("column", "created"), _("depth"),
              _("unjudged"), _("holes"), _("earlier qrels"),
              _("later qrels"))  # fmt: skip
    lines = tuple(
        (str(one.number), one.made_by, one.get_state_display(), one.created_at.isoformat(), one.depth,
         _funnel_count(one.funnel, "candidates"), _funnel_count(one.funnel, "relevant"), one.before.number,
         one.after.number if one.after else None)
        for one in rows
    )  # fmt: skip
    return DownloadTable("fillings", _("Hole fillings"), header, lines, 4)


def versions_table(rows: Iterable[Qrels]) -> DownloadTable:
    """Versions of the qrels, with how many labels each has from whom."""
    found = list(rows)
    origins = list(dict.fromkeys(origin for one in found for origin in one.counts.get("origins", {})))
    made = (_("note"), pgettext("column", "by"), pgettext("column", "created"))
    counts = (pgettext("column", "queries"), _("judged"), _("relevant"))
    header = (_("version"), _("kind"), *made, *counts, *origins)
    lines = tuple(
        (str(one.number), one.get_kind_display(), one.note, one.made_by, one.created_at.isoformat(),
         *(_funnel_count(one.counts, name) for name in ("queries", "judged", "relevant")),
         *(_funnel_count(one.counts.get("origins", {}), origin) or 0 for origin in origins))
        for one in found
    )  # fmt: skip
    return DownloadTable("versions", _("Versions of the qrels"), header, lines, 5)


def _funnel_count(counts: dict[str, Any], name: str) -> int | None:
    value = counts.get(name)
    return None if value is None else int(value)
