"""Builder of a training set from labelled pairs, in one pass over pairs and one over texts."""

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

from django.db import connection
from django.utils.translation import gettext as _

from annotation.exports.files import Counts, ExportFiles
from annotation.exports.length_balance.balancing import balance_pairs
from annotation.exports.options import BENCHMARKS, ExportOptions
from annotation.exports.query_splits.lists import NamedQueries, list_splits
from annotation.exports.query_splits.named import fixed_ids
from annotation.exports.query_splits.parts import DEV, TEST, TRAIN
from annotation.exports.sets.batches import LinesWriter, SetWriter, build_batches
from annotation.exports.sets.benchmarks import BeirWriter, MtebWriter
from annotation.exports.sets.choosing import LeftOutCounts, filter_queries
from annotation.exports.sets.dividing import divide_queries
from annotation.exports.sets.erank import ErankWriter, read_scored_rows
from annotation.exports.sets.grouped import GROUPED_FORMATS, GroupedWriter
from annotation.exports.sets.hard_negatives import add_assumed
from annotation.exports.sets.parquet import ParquetWriter
from annotation.exports.sets.preferences import PreferenceWriter, read_preference_rows
from annotation.exports.sets.prism import PrismWriter
from annotation.exports.sets.rows import SetQuery, SetRow, by_query, keep_rows, order_key
from annotation.exports.sets.shapes import CompletionWriter, ShapeWriter, rows_used
from annotation.exports.sets.source import (
    SetSource,
    check_teacher,
    in_pieces,
    read_digests,
    read_documents,
    teacher_answers,
)
from annotation.exports.sets.splitting import Sides
from charts.translation import gettext_noop
from corpus.errors import BadInput, BadOption
from corpus.evidence.targets import texts_of
from corpus.models import Collection
from corpus.search.lengths import length_counter

Progress = Callable[[int], None]
WITHOUT_EVIDENCE = gettext_noop("relevant without contribution and evidence")
# Formats whose rows carry each judge's vote, contribution and evidence.
EVIDENCE = ("prism", "parquet", "trl")
# Formats without a teacher's score, or with a score of their own.
WITHOUT_TEACHER = (
    "beir",
    "mteb",
    "trl",
    "erank-sft",
    "rtriever",
    "ms-swift",
    "ms-swift-embedding",
    "tevatron",
    "preferences",
)


def make_set(
    collection: Collection, options: ExportOptions, files: ExportFiles, progress: Progress
) -> tuple[Counts, dict[str, Any], dict[str, list[SetQuery]]]:
    """Write the files of a set. Return counts and details for the manifest, and the queries by split.

    Raises BadInput if the options leave no pairs, or a score is missing.

    1. Read the labelled pairs of each collection, and choose from them.
    2. Divide the queries into splits, and balance the training split.
    3. Write each split in batches, then the answers of rerank APIs.
    """
    name = options.format
    if name in WITHOUT_TEACHER:
        options = options.model_copy(update={"teacher": "labels"})
    if name != "prism":
        options = options.model_copy(update={"preset": "paper"})
    # Ids have the collection's name as prefix where there are several.
    names = dict.fromkeys((collection.name, *options.collections))
    collections = {row.name: row for row in Collection.objects.filter(name__in=names)}
    if unknown := [collection_name for collection_name in names if collection_name not in collections]:
        raise BadOption("collections", _("There is no collection %(names)s.") % {"names": ", ".join(unknown)})
    sources = [
        SetSource(collections[collection_name], prefix=f"{collection_name}:" if len(names) > 1 else "")
        for collection_name in names
    ]
    left_out: LeftOutCounts = Counter()
    queries = _choose_queries(sources, options, left_out)
    sides, details = divide_queries(queries, sources, options, left_out)
    details |= _describe_labels(sources, options)
    if options.balance:
        sides[TRAIN], details["balance"] = _balance_train(sides[TRAIN], options, left_out)
    # A second time, because dividing and balancing removed pairs.
    if TRAIN in sides:
        sides[TRAIN] = _drop_rows_without_line(sides[TRAIN], options, left_out)
    if options.near is None and len(sides) > 1:
        # Texts may be on both sides: the manifest says how many pairs of train that concerns.
        measured = {row.document for side in (DEV, TEST) for query in sides.get(side, ()) for row in query.rows}
        details["shared_documents"] = sum(
            row.document in measured for query in sides.get(TRAIN, ()) for row in query.rows
        )
    if not options.allow_incomplete:
        _check_completeness(sides, options, left_out)
    writer = _create_writer(files, options, sources)
    rubrics = {source.collection.name: source.collection.relevance for source in sources}
    row_counts: Counter[str] = Counter()
    for side, side_queries in sides.items():
        writer.begin(side, side_queries)
        for batch in build_batches(side_queries, rubrics, evidence=name in EVIDENCE):
            row_counts[side] += writer.add(batch)
            progress(row_counts.total())
    details |= writer.end()
    if isinstance(writer, LinesWriter) and writer.synthetic_lines:
        # The lines of synthetic queries are listed in a file of its own, for formats whose lines are not marked.
        synthetic_output = writer.files.open("synthetic.jsonl")
        for synthetic_line in writer.synthetic_lines:
            synthetic_output.put(json.dumps(synthetic_line) + "\n", rows=1)
    if options.teacher == "scores":
        # The stored answers of rerank APIs are part of the snapshot; without any there is no file.
        output = None
        for answer in (answer for source in sources for answer in teacher_answers(source)):
            output = output or files.open("teacher.jsonl")
            output.put(json.dumps(answer, ensure_ascii=False) + "\n", rows=1)
    files.close()
    return _count_rows(sides, row_counts, left_out), details, sides


def _describe_labels(sources: list[SetSource], options: ExportOptions) -> dict[str, Any]:
    """Return for the manifest the source of the labels, unless they are the current ones, and the held-out queries."""
    details: dict[str, Any] = {}
    if options.aggregate is not None:
        descriptions = {source.collection.name: source.described["aggregate"] for source in sources}
        details["aggregate"] = {"by": options.aggregate, "of": descriptions}
    if options.qrels is not None:
        details["qrels"] = sources[0].described["qrels"]
    if held_out := [description for source in sources for description in source.described.get("held_out", [])]:
        details["held_out"] = held_out
    return details


def _choose_queries(sources: list[SetSource], options: ExportOptions, left_out: LeftOutCounts) -> list[SetQuery]:
    """Return the queries of all collections, with the rows that remain after all choices."""
    # The run is of the first collection.
    other_options = options.model_copy(update={"run": None})
    queries_by_source = [
        _choose_source_queries(source, options if source is sources[0] else other_options, left_out)
        for source in sources
    ]
    quota = options.quota or (min(map(len, queries_by_source)) if options.uniform else None)
    split_names = options.named_splits.values()
    fixed = {query_id for source in sources for query_id in fixed_ids(source.collection, source.prefix, split_names)}
    queries = [
        query
        for source_queries in queries_by_source
        for query in _draw_queries(source_queries, quota, options.seed, left_out, fixed)
    ]
    # Queries that a model wrote are marked, with their seeds.
    prefixes = {source.collection.name: source.prefix for source in sources}
    by_key = {query.key: query for query in queries}
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id, metadata ->> 'seed_query' FROM corpus_query WHERE id = ANY(%s) AND metadata @> %s::jsonb",
            [list(by_key), '{"synthetic": true}'],
        )
        for key, seed in cursor:
            query = by_key[key]
            query.synthetic, query.seed = True, f"{prefixes[query.source]}{seed}" if seed else ""
    if not queries:
        reason = _format_reasons(left_out) or _("no pair has such a label yet")
        raise BadInput(_("Nothing is left to train on (%(why)s)") % {"why": reason})
    return queries


def _format_reasons(left_out: LeftOutCounts) -> str:
    words = _("%(n)s pairs left out: %(reason)s")
    return "; ".join(words % {"n": n, "reason": _(reason)} for reason, n in left_out.items() if n)


def _choose_source_queries(source: SetSource, options: ExportOptions, left_out: LeftOutCounts) -> list[SetQuery]:
    """Read the pairs of a collection, and return its queries with the rows that the options leave."""
    if options.format == "erank-sft":
        rows = read_scored_rows(source, options, left_out)
    elif options.format == "preferences":
        rows = read_preference_rows(source, options, left_out)
    else:
        rows = source.rows(options, left_out)
    if options.qrels is None:
        # Queries on held-out lists that the set does not name, and the lists' descriptions for the manifest.
        collection = source.collection
        used_names = set(options.named_splits.values())
        splits = [row for row in list_splits(collection) if row.name not in used_names]
        lists = [NamedQueries(row.name, collection.name, frozenset(row.query_ids), is_list=True) for row in splits]
        ids = {source.prefix + query_id for queries in lists for query_id in queries.ids}
        # A query on two lists is in the set if one of them is named.
        held_out = ids - fixed_ids(collection, source.prefix, used_names)
        source.described["held_out"] = [queries.described() for queries in lists]
        count, rows = len(rows), [row for row in rows if row.query_id not in held_out]
        left_out[gettext_noop("its query is on a kept list, and held out")] += count - len(rows)
    check_teacher(rows, options)
    if options.preset == "released":
        # The released code takes no score that contradicts the label, so that such a pair without a text has no loss.
        low_pairs = [row.pair for row in rows if row.relevant and (row.target_score is None or row.target_score <= 0.5)]
        reason = gettext_noop("relevant with a low score and without contribution and evidence")
        rows = _drop_without_text(rows, low_pairs, reason, left_out)
    if options.format == "trl":
        # A relevant pair without a text has no answer that a model could learn.
        relevant = [row.pair for row in rows if row.relevant]
        rows = _drop_without_text(rows, relevant, WITHOUT_EVIDENCE, left_out)
    queries = by_query(rows)
    if options.run is not None:
        add_assumed(queries, source, options, left_out)
    limits = options.model_dump(include={"agreement", "negatives", "documents", "seed"})
    return _drop_rows_without_line(filter_queries(queries, left_out, **limits), options, left_out)


def _drop_without_text(rows: list[SetRow], pairs: list[int], reason: str, left_out: LeftOutCounts) -> list[SetRow]:
    """Return the rows without those of these pairs that have neither contribution nor evidence."""
    textless = set(pairs) - {pair for piece in in_pieces(pairs) for pair in texts_of(piece)}
    left_out[reason] += len(textless)
    return [row for row in rows if row.pair not in textless]


def _drop_rows_without_line(queries: list[SetQuery], options: ExportOptions, left_out: LeftOutCounts) -> list[SetQuery]:
    """Return the queries with only the rows of which the format's lines contain the document."""
    if options.format in GROUPED_FORMATS:
        queries = _drop_copies_of_positives(queries, left_out)
    elif options.format != "sentence-transformers":
        return queries
    too_many = gettext_noop("a negative that does not fit in a row of this shape")
    too_few = gettext_noop("its query has too few relevant or other documents for a row of this shape")

    def choose(query: SetQuery) -> list[SetRow]:
        if options.format in GROUPED_FORMATS:
            has_both_labels = len({row.relevant for row in query.rows}) == 2
            rows = query.rows if has_both_labels else []
        else:
            rows = rows_used(query.rows, options)
        left_out[too_many if rows else too_few] += len(query.rows) - len(rows)
        return rows

    return keep_rows(queries, choose)


def _drop_copies_of_positives(queries: list[SetQuery], left_out: LeftOutCounts) -> list[SetQuery]:
    """Return the queries without negatives that have the same text as one of their positives."""
    documents = sorted({row.document for query in queries for row in query.rows})
    digests = {key: digest for keys in in_pieces(documents) for key, digest in read_digests(keys).items()}

    def choose(query: SetQuery) -> list[SetRow]:
        positives = {digests[row.document] for row in query.rows if row.relevant}
        rows = [row for row in query.rows if row.relevant or digests[row.document] not in positives]
        left_out[gettext_noop("a negative with the same text as a relevant document")] += len(query.rows) - len(rows)
        return rows

    return keep_rows(queries, choose)


def _check_completeness(sides: Sides, options: ExportOptions, left_out: LeftOutCounts) -> None:
    """Raise BadOption for a set with an empty split, or with only one label in train."""
    explanation = f" ({reasons})" if (reasons := _format_reasons(left_out)) else ""
    for side, queries in sides.items():
        if not queries:
            if name := options.named_splits.get(side):
                way_out = _("no query named %(name)s has a label") % {"name": name}
            else:
                way_out = _("take another split (1: no dev set)") if side == DEV else _("choose other options")
            words = _("%(side)s would be empty%(why)s: %(way_out)s, or allow an incomplete set.")
            values: dict[str, Any] = {"side": side.capitalize(), "why": explanation, "way_out": way_out}
            raise BadOption("allow_incomplete", words % values)
    relevant = [row.relevant for query in sides.get(TRAIN, []) for row in query.rows]
    if len(set(relevant)) == 1 and options.format != "preferences":
        write = _("let a judge write them (write_evidence)")
        words = _(
            "All %(n)s pairs of train would be %(which)s%(why)s, and a model learns nothing from one label alone: "
            "%(way_out)s, or allow an incomplete set."
        )
        values = {
            "n": len(relevant),
            "which": _("relevant") if relevant[0] else _("not relevant"),
            "why": explanation,
            "way_out": write if left_out[WITHOUT_EVIDENCE] else _("choose other options"),
        }
        raise BadOption("allow_incomplete", words % values)


def _draw_queries(
    queries: list[SetQuery], quota: int | None, seed: int, left_out: LeftOutCounts, fixed: set[str]
) -> list[SetQuery]:
    """Draw the first queries of the seeded order, and all whose split is `fixed`; return them in their order."""
    if quota is None or len(queries) <= quota:
        return queries
    drawn = [query for query in queries if query.id not in fixed]
    taken = {query.key for query in sorted(drawn, key=lambda query: order_key(seed, query.id))[:quota]}
    taken |= {query.key for query in queries if query.id in fixed}
    left_out[gettext_noop("outside the queries drawn from its collection")] += sum(
        len(q.rows) for q in queries if q.key not in taken
    )
    return [query for query in queries if query.key in taken]


def _balance_train(
    queries: list[SetQuery], options: ExportOptions, left_out: LeftOutCounts
) -> tuple[list[SetQuery], dict[str, Any]]:
    """Cap the cells of the training side; return its queries, and what the manifest says. Dev stays as it is."""
    rows = [row for query in queries for row in query.rows]
    count, unit = length_counter(options.tokenizer)
    lengths: dict[int, int] = {}
    for keys in in_pieces(sorted({row.document for row in rows})):
        lengths |= {key: count(text.full_text) for key, text in read_documents(keys).items()}
    places, spread = balance_pairs(
        [row.target_score or 0.0 for row in rows],
        [lengths[row.document] for row in rows],
        [order_key(options.seed, row.query_id, row.doc_id) for row in rows],
        entropy=options.balance_entropy,
    )
    left_out[gettext_noop("its length-by-score cell is full")] += len(rows) - len(places)
    details = spread | {"length_unit": unit, "entropy_over": options.balance_entropy}
    return by_query([rows[position] for position in places]), details


def _create_writer(files: ExportFiles, options: ExportOptions, sources: list[SetSource]) -> SetWriter:
    name = options.format
    if name == "prism":
        return PrismWriter(
            files,
            options,
            {judge: voter for source in sources for judge, voter in source.judges.items()},
        )
    if name in BENCHMARKS:
        return (BeirWriter if name == "beir" else MtebWriter)(files, sources)
    if name in GROUPED_FORMATS:
        return GroupedWriter(files, name, options)
    if name == "parquet":
        return ParquetWriter(files, options, sources[0].collection)
    if name == "erank-sft":
        return ErankWriter(files)
    if name == "preferences":
        return PreferenceWriter(files, options, sources)
    return CompletionWriter(files) if name == "trl" else ShapeWriter(files, options)


def _count_rows(sides: dict[str, list[SetQuery]], row_counts: Counter[str], left_out: LeftOutCounts) -> Counts:
    """Count what was written: lines (`rows`), and the pairs in them by what they are, for each split and in all."""
    rows = [row for queries in sides.values() for query in queries for row in query.rows]
    grades, origins = Counter(str(row.grade) for row in rows), Counter(row.origin for row in rows)
    return {
        "rows": row_counts.total(),
        "pairs": len(rows),
        "queries": sum(map(len, sides.values())),
        "splits": {
            side: {
                "rows": row_counts[side],
                "pairs": sum(len(query.rows) for query in queries),
                "queries": len(queries),
                "relevant": sum(row.relevant for query in queries for row in query.rows),
            }
            for side, queries in sides.items()
        },
        "grades": dict(sorted(grades.items())),
        "origins": dict(sorted(origins.items())),
        "assumed": sum(row.assumed for row in rows),
        "synthetic_queries": sum(query.synthetic for queries in sides.values() for query in queries),
        "left_out": {reason: n for reason, n in sorted(left_out.items()) if n},
    }
