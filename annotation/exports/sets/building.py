"""Building a training set from labelled pairs, in one pass over pairs and one over texts."""

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

from django.utils.translation import gettext as _

from annotation.exports.files import Counts, ExportFiles
from annotation.exports.length_balance.balancing import balance_pairs
from annotation.exports.options import BENCHMARKS, ExportOptions
from annotation.exports.query_splits.named import fixed_ids, hold_out
from annotation.exports.query_splits.parts import DEV, TRAIN
from annotation.exports.sets import source
from annotation.exports.sets.batches import LinesWriter, SetWriter, build_batches
from annotation.exports.sets.benchmarks import Beir, Mteb
from annotation.exports.sets.choosing import Left, filter_queries
from annotation.exports.sets.dividing import divide_queries
from annotation.exports.sets.erank import Chains, read_scored_rows
from annotation.exports.sets.grouped import GROUPED, Grouped
from annotation.exports.sets.hard_negatives import add_assumed
from annotation.exports.sets.parquet import Parquet
from annotation.exports.sets.prism import PrismWriter
from annotation.exports.sets.rows import SetQuery, SetRow, by_query, keep_rows, order_key
from annotation.exports.sets.shapes import Completions, Shaped, rows_used
from annotation.exports.sets.source import SetSource
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
# Formats that have no place for a score, or one of their own.
WITHOUT_TEACHER = ("beir", "mteb", "trl", "erank-sft", "rtriever", "ms-swift", "ms-swift-embedding", "tevatron")


def make_set(
    collection: Collection, asked: ExportOptions, files: ExportFiles, progress: Progress
) -> tuple[Counts, dict[str, Any], dict[str, list[SetQuery]]]:
    """Write the files of a set; return counts and details for the manifest, and the queries by split.

    Raises BadInput when the options leave nothing, or a score is missing.
    """
    name = asked.format
    if name in WITHOUT_TEACHER:
        asked = asked.model_copy(update={"teacher": "labels"})
    if name != "prism":
        asked = asked.model_copy(update={"preset": "paper"})
    sources = _find_sources(collection, asked)
    left: Left = Counter()
    queries = _choose_queries(sources, asked, left)
    sides, details = divide_queries(queries, sources, asked, left)
    details |= _describe_labels(sources, asked)
    if asked.balance:
        sides[TRAIN], details["balance"] = _balance_train(sides[TRAIN], asked, left)
    if TRAIN in sides:  # the steps since the first time took pairs away
        sides[TRAIN] = _with_a_line(sides[TRAIN], asked, left)
    if not asked.allow_incomplete:
        _check_whole(sides, asked, left)
    writer = _create_writer(files, asked, sources)
    rubrics = {one.collection.name: one.collection.relevance for one in sources}
    written: Counter[str] = Counter()
    for side, kept in sides.items():
        writer.begin(side, kept)
        for batch in build_batches(kept, rubrics, evidence=name in EVIDENCE):
            written[side] += writer.add(batch)
            progress(written.total())
    details |= writer.end()
    if isinstance(writer, LinesWriter):
        writer.write_synthetic_lines()
    if asked.teacher == "scores":
        # The cached answers of rerank APIs belong to the snapshot; no file where there are none.
        output = None
        for answer in (answer for one in sources for answer in source.teacher_answers(one)):
            output = output or files.open("teacher.jsonl")
            output.put(json.dumps(answer, ensure_ascii=False) + "\n", rows=1)
    files.close()
    return _count_rows(sides, written, left), details, sides


def _describe_labels(sources: list[SetSource], asked: ExportOptions) -> dict[str, Any]:
    """Say for the manifest what the labels are, where they are not those of now, and which queries are held out."""
    details: dict[str, Any] = {}
    if asked.aggregate is not None:
        of = {one.collection.name: one.described["aggregate"] for one in sources}
        details["aggregate"] = {"by": asked.aggregate, "of": of}
    if asked.qrels is not None:
        details["qrels"] = sources[0].described["qrels"]
    if held := [described for one in sources for described in one.described.get("held_out", [])]:
        details["held_out"] = held
    return details


def _find_sources(collection: Collection, asked: ExportOptions) -> list[SetSource]:
    """Find the collections that the set is drawn from. Ids carry the collection's name where there are several."""
    names = dict.fromkeys((collection.name, *asked.collections))
    found = {one.name: one for one in Collection.objects.filter(name__in=names)}
    if unknown := [name for name in names if name not in found]:
        raise BadOption("collections", _("There is no collection %(names)s.") % {"names": ", ".join(unknown)})
    return [SetSource(found[name], prefix=f"{name}:" if len(names) > 1 else "") for name in names]


def _choose_queries(sources: list[SetSource], asked: ExportOptions, left: Left) -> list[SetQuery]:
    """Return the queries of all collections with the rows that stay."""
    # The run is the first collection's.
    others = asked.model_copy(update={"run": None})
    chosen = [_of_one(one, asked if one is sources[0] else others, left) for one in sources]
    quota = asked.quota or (min(map(len, chosen)) if asked.uniform else None)
    fixed = {pk for one in sources for pk in fixed_ids(one.collection, one.prefix, asked.named_splits.values())}
    kept = [query for queries in chosen for query in _draw_queries(queries, quota, asked.seed, left, fixed)]
    source.mark_synthetic(kept, {one.collection.name: one.prefix for one in sources})
    if not kept:
        why = _format_reasons(left) or _("no pair has such a label yet")
        raise BadInput(_("Nothing is left to train on (%(why)s)") % {"why": why})
    return kept


def _format_reasons(left: Left) -> str:
    words = _("%(n)s pairs left out: %(reason)s")
    return "; ".join(words % {"n": n, "reason": _(reason)} for reason, n in left.items() if n)


def _of_one(one: SetSource, asked: ExportOptions, left: Left) -> list[SetQuery]:
    rows = read_scored_rows(one, asked, left) if asked.format == "erank-sft" else one.rows(asked, left)
    if asked.qrels is None:
        held, one.described["held_out"] = hold_out(one.collection, one.prefix, asked.named_splits.values())
        every, rows = len(rows), [row for row in rows if row.query_id not in held]
        left[gettext_noop("its query is on a kept list, and held out")] += every - len(rows)
    source.check_teacher(rows, asked)
    if asked.preset == "released":
        # The released code takes no score that contradicts the label; without a text to learn nothing is left then.
        bare = [row.pair for row in rows if row.relevant and (row.teacher is None or row.teacher <= 0.5)]
        reason = gettext_noop("relevant with a low score and without contribution and evidence")
        rows = _drop_without_text(rows, bare, reason, left)
    if asked.format == "trl":
        # Such a pair has no answer that a model could learn to write.
        relevant = [row.pair for row in rows if row.relevant]
        rows = _drop_without_text(rows, relevant, WITHOUT_EVIDENCE, left)
    queries = by_query(rows)
    if asked.run is not None:
        add_assumed(queries, one, asked, left)
    chosen = asked.model_dump(include={"agreement", "negatives", "documents", "seed"})
    return _with_a_line(filter_queries(queries, left, **chosen), asked, left)


def _drop_without_text(rows: list[SetRow], pairs: list[int], reason: str, left: Left) -> list[SetRow]:
    """Return the rows without those of the pairs that have neither contribution nor evidence."""
    without = set(pairs) - {pair for some in source.in_pieces(pairs) for pair in texts_of(some)}
    left[reason] += len(without)
    return [row for row in rows if row.pair not in without]


def _with_a_line(queries: list[SetQuery], asked: ExportOptions, left: Left) -> list[SetQuery]:
    """Return the queries with the pairs that stand in some line of the format; some formats' lines skip some."""
    if asked.format in GROUPED:
        queries = _drop_copies_of_positives(queries, left)
    elif asked.format != "sentence-transformers":
        return queries
    no_room = gettext_noop("a negative that does not fit in a row of this shape")
    lacking = gettext_noop("its query has too few relevant or other documents for a row of this shape")

    def choose(query: SetQuery) -> list[SetRow]:
        both = len({row.relevant for row in query.rows}) == 2
        rows = (query.rows if both else []) if asked.format in GROUPED else rows_used(query.rows, asked)
        left[no_room if rows else lacking] += len(query.rows) - len(rows)
        return rows

    return keep_rows(queries, choose)


def _drop_copies_of_positives(queries: list[SetQuery], left: Left) -> list[SetQuery]:
    """Return the queries without negatives whose text is that of one of their positives."""
    wanted = sorted({row.document for query in queries for row in query.rows})
    texts = {key: text for keys in source.in_pieces(wanted) for key, text in source.read_digests(keys).items()}

    def choose(query: SetQuery) -> list[SetRow]:
        positives = {texts[row.document] for row in query.rows if row.relevant}
        rows = [row for row in query.rows if row.relevant or texts[row.document] not in positives]
        left[gettext_noop("a negative with the same text as a relevant document")] += len(query.rows) - len(rows)
        return rows

    return keep_rows(queries, choose)


def _check_whole(sides: Sides, asked: ExportOptions, left: Left) -> None:
    """Refuse a set that teaches nothing, or that nothing can be measured on, unless asked for."""
    why = f" ({reasons})" if (reasons := _format_reasons(left)) else ""
    for side, queries in sides.items():
        if not queries:
            if name := asked.named_splits.get(side):
                way_out = _("no query named %(name)s has a label") % {"name": name}
            else:
                way_out = _("take another split (1: no dev set)") if side == DEV else _("choose other options")
            words = _("%(side)s would be empty%(why)s: %(way_out)s, or allow an incomplete set.")
            values: dict[str, Any] = {"side": side.capitalize(), "why": why, "way_out": way_out}
            raise BadOption("allow_incomplete", words % values)
    relevant = [row.relevant for query in sides.get(TRAIN, []) for row in query.rows]
    if len(set(relevant)) == 1:
        write = _("let a judge write them (write_evidence)")
        words = _(
            "All %(n)s pairs of train would be %(which)s%(why)s, and a model learns nothing from one label alone: "
            "%(way_out)s, or allow an incomplete set."
        )
        values = {
            "n": len(relevant),
            "which": _("relevant") if relevant[0] else _("not relevant"),
            "why": why,
            "way_out": write if left[WITHOUT_EVIDENCE] else _("choose other options"),
        }
        raise BadOption("allow_incomplete", words % values)


def _draw_queries(queries: list[SetQuery], quota: int | None, seed: int, left: Left, fixed: set[str]) -> list[SetQuery]:
    """Draw the first queries of the seeded order, and all whose split is `fixed`; return them in their order."""
    if quota is None or len(queries) <= quota:
        return queries
    drawn = [query for query in queries if query.id not in fixed]
    taken = {query.key for query in sorted(drawn, key=lambda query: order_key(seed, query.id))[:quota]}
    taken |= {query.key for query in queries if query.id in fixed}
    left[gettext_noop("outside the queries drawn from its collection")] += sum(
        len(q.rows) for q in queries if q.key not in taken
    )
    return [query for query in queries if query.key in taken]


def _balance_train(queries: list[SetQuery], asked: ExportOptions, left: Left) -> tuple[list[SetQuery], dict[str, Any]]:
    """Cap the cells of the training side; return its queries, and what the manifest says. Dev stays as it is."""
    rows = [row for query in queries for row in query.rows]
    count, unit = length_counter(asked.tokenizer)
    lengths: dict[int, int] = {}
    for keys in source.in_pieces(sorted({row.document for row in rows})):
        lengths |= {key: count(text.whole) for key, text in source.read_documents(keys).items()}
    places, found = balance_pairs(
        [row.teacher or 0.0 for row in rows],
        [lengths[row.document] for row in rows],
        [order_key(asked.seed, row.query_id, row.doc_id) for row in rows],
        entropy=asked.balance_entropy,
    )
    left[gettext_noop("its length-by-score cell is full")] += len(rows) - len(places)
    details = found | {"length_unit": unit, "entropy_over": asked.balance_entropy}
    return by_query([rows[place] for place in places]), details


def _create_writer(files: ExportFiles, asked: ExportOptions, sources: list[SetSource]) -> SetWriter:
    name = asked.format
    if name == "prism":
        return PrismWriter(files, asked, {judge: voter for one in sources for judge, voter in one.judges.items()})
    if name in BENCHMARKS:
        return (Beir if name == "beir" else Mteb)(files, sources)
    if name in GROUPED:
        return Grouped(files, name, asked)
    if name == "parquet":
        return Parquet(files, asked, sources[0].collection)
    if name == "erank-sft":
        return Chains(files)
    return Completions(files) if name == "trl" else Shaped(files, asked)


def _count_rows(sides: dict[str, list[SetQuery]], written: Counter[str], left: Left) -> Counts:
    """Count what was written: lines (`rows`), and the pairs in them by what they are, for each split and in all."""
    rows = [row for queries in sides.values() for query in queries for row in query.rows]
    grades, origins = Counter(str(row.grade) for row in rows), Counter(row.origin for row in rows)
    return {
        "rows": written.total(),
        "pairs": len(rows),
        "queries": sum(map(len, sides.values())),
        "splits": {
            side: {
                "rows": written[side],
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
        "left_out": {reason: n for reason, n in sorted(left.items()) if n},
    }
