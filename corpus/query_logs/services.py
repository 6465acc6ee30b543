"""Services of query logs: queries drawn from a log become queries of a collection, with their counts."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from django.utils.translation import gettext as _

from actions.services import Actor, Unchanged, action
from corpus import table_statistics
from corpus.errors import BadOption
from corpus.formats.files import FileSource
from corpus.holding import hold_row
from corpus.importing import staging, texts
from corpus.importing.left_out import LeftOut
from corpus.importing.table_records import TextRecord, content_hash
from corpus.models import Collection, Query
from corpus.query_logs.options import QueryLogOptions
from corpus.query_logs.reading import LogQuery, QueryLog, id_of, read_log
from corpus.query_logs.sampling import STRATA, draw_sample, find_certain, strata_of
from store.sql import execute

RENEW = """
UPDATE corpus_query q SET metadata = q.metadata || jsonb_build_object('count', s.count)
FROM unnest(%(keys)s::bigint[], %(counts)s::bigint[]) AS s (key, count)
WHERE q.id = s.key AND q.metadata -> 'count' IS DISTINCT FROM to_jsonb(s.count)
"""


def _note(options: QueryLogOptions, report: Mapping[str, Any]) -> dict[str, Any]:
    # "by" is the audit log's own word, for the person.
    return {name: report[name] for name in ("file", "sampled", "new", "renewed")} | {"drawn_by": options.by}


@action("import.queries", noted=_note)
def import_queries(
    actor: Actor,
    collection: Collection,
    options: QueryLogOptions,
    *,
    source: FileSource,
    columns: Mapping[str, str] | None = None,
    progress: staging.ImportProgress = staging.ignore_progress,
) -> dict[str, Any] | Unchanged:
    """Add queries drawn from a log to the collection; return the document for --json.

    A query of the collection with the same words is not added again: it keeps its text, id and labels, and its count
    becomes that of the log, whether it was drawn or not. `columns`: header to field, in place of the options' columns.
    Raises BadInput and BadOption; then nothing is changed.

    1. Read the log and draw from it.
    2. Renew the counts of queries that the collection has.
    3. Add the drawn queries that it does not have.
    """
    fields = {options.query_column: "query", options.count_column: "count"}
    log = read_log(source, columns or {header: field for header, field in fields.items() if header})
    progress("queries", len(log.queries))
    drawn, strata = _draw(log, options)
    hold_row(collection, no_key=True)
    keys_by_words: dict[str, list[int]] = {}
    taken_ids: set[str] = set()
    current = Query.objects.filter(collection=collection, is_current=True)
    for key, name, text in current.values_list("pk", "external_id", "text").iterator():
        # By the words, so that queries with ids of other origin are joined, too.
        keys_by_words.setdefault(id_of(text), []).append(key)
        taken_ids.add(name)
    counts = {key: query.times for query in log.queries for key in keys_by_words.get(query.id, ())}
    renewed = execute(RENEW, keys=list(counts), counts=list(counts.values()))
    taken_ids |= keys_by_words.keys()
    new = [query for query in drawn if query.id not in taken_ids]
    metadata = {"sampled_by": options.by} if len(drawn) < len(log.queries) else {}

    def records(_source: FileSource) -> Iterator[TextRecord]:
        for line, query in enumerate(new, 1):
            details = json.dumps({"count": query.times, **metadata})
            yield TextRecord(line, query.id, "", query.text, details, content_hash(query.text, ""))

    if new:
        texts.move_in(collection, Query, source, records, update=False, left_out=LeftOut(), progress=progress)
    table_statistics.renew_statistics(len(new) + renewed, Query)
    sampled_traffic = sum(query.times for query in drawn)
    certain = {"queries": 0, "traffic": 0}
    if options.by == "pptss" and options.sample is not None:
        times = np.array([query.times for query in log.queries], dtype=np.int64)
        is_certain = find_certain(times, options.sample)
        certain = {"queries": int(is_certain.sum()), "traffic": int(times[is_certain].sum())}
    report = {
        "collection": collection.name,
        "file": source.name.rpartition("/")[2],
        "lines": log.lines,
        "empty": log.empty,
        "unasked": log.unasked,
        "counted_by": "column" if log.has_counts else "lines",
        "distinct": len(log.queries),
        "traffic": log.traffic,
        "by": options.by,
        "seed": options.seed,
        "sampled": len(drawn),
        "sampled_traffic": sampled_traffic,
        "share": sampled_traffic / log.traffic,
        "strata": strata,
        "certain": certain,
        "new": len(new),
        "renewed": renewed,
        "queries": current.count(),
        "changed": bool(new or renewed),
    }
    return report if report["changed"] else Unchanged(report)


def _draw(log: QueryLog, options: QueryLogOptions) -> tuple[list[LogQuery], dict[str, dict[str, int]]]:
    """Return the drawn queries, and by stratum the numbers of queries and of drawn ones, if they were drawn by strata.

    Raises BadOption for more queries than there are, and where counts are needed and there are none.
    """
    if options.sample is None:
        return log.queries, {}
    if options.sample > len(log.queries):
        message = _("The log has only %(count)s different queries: choose at most as many, or leave this out.")
        raise BadOption("sample", message % {"count": f"{len(log.queries):,}"})
    counts = np.array([query.times for query in log.queries], dtype=np.int64)
    if options.by != "uniform" and not log.has_counts and counts.max() == 1:
        message = _(
            "Nothing says how often a query was asked: the log has no column of counts, and no query is in it twice. "
            "Name the column of counts, or draw each query alike."
        )
        raise BadOption("by", message)
    positions = draw_sample(counts, options.sample, options.by, options.seed)
    strata = {}
    if options.by == "head-torso-tail":
        of_queries = strata_of(counts)
        for number, name in enumerate(STRATA):
            queries, sampled = (int((group == number).sum()) for group in (of_queries, of_queries[positions]))
            strata[name] = {"queries": queries, "sampled": sampled}
    return [log.queries[position] for position in positions], strata
