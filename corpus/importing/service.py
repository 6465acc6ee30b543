"""Import of a collection's files in one transaction: all of their contents, or nothing."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext as _

from corpus import table_statistics
from corpus.errors import BadInput, BadOption
from corpus.formats.files import FileSource
from corpus.holding import hold
from corpus.importing import assess, candidates, judgments, records, staging, tables, texts
from corpus.importing.detection import HOLDS
from corpus.importing.grades import read_grades
from corpus.importing.left_out import LeftOut
from corpus.importing.options import ImportOptions
from corpus.importing.run_lines import top_of_run
from corpus.importing.sources import count_sources
from corpus.importing.staging import ImportProgress, ignore_progress
from corpus.importing.table_records import TextRecord
from corpus.long_documents import count_long_documents
from corpus.models import Assessor, Collection, Document, Judgment, Pair, Query
from corpus.search import full_text
from store.sql import fetch_row

PARTS = ("corpus", "queries", "qrels", "judgments", "pairs", "runs")
Files = Path | FileSource | Sequence[Path | FileSource] | None
Counts = tuple[int, int, int]  # New, updated, and the same as before.


class ImportFiles:
    """The opened files of an import, by their contents, and its options. Raises BadInput for a missing file.

    Documents and queries may be left out if the collection has them. `judgments` are grades that
    name their assessors. Several files of qrels are combined, such as the splits of a BEIR folder.
    """

    def __init__(
        self, *, options: ImportOptions | None = None, dry_run: bool = False, corpus: Files = None,
        queries: Files = None, qrels: Files = None, judgments: Files = None, pairs: Files = None, runs: Files = None,
    ) -> None:  # fmt: skip
        self.options, self.dry_run = options or ImportOptions(), dry_run
        parts = (corpus, queries, qrels, judgments, pairs, runs)
        self.sources = {part: open_files(files) for part, files in zip(PARTS, parts, strict=True)}
        # The pairs of the qrels are candidates by option, or if nothing else names candidates.
        others = self.sources["pairs"] or self.sources["runs"] or self.options.bm25 or self.options.static
        self.qrels_are_candidates = self.options.qrels_pairs or not others

    def assessor_kind(self, *, named: bool = False) -> Assessor.Kind:
        """Return the kind of the assessors of the grades, either those named in files or the others."""
        return assess.KINDS[self.options.graded_by or ("human" if named else "reference")]


# The benchmark registers here, to store runs: (collection, files, options) -> the number of new
# runs, and the names that were in use.
RUN_KEEPERS: list[Callable[[Collection, list[FileSource], ImportOptions], tuple[int, list[str]]]] = []
# The pages register here, to store the numbers of candidates by source (corpus.importing.sources).
SOURCE_KEEPERS: list[Callable[[Collection, dict[str, int]], None]] = []


def open_files(files: Files) -> list[FileSource]:
    """Open the files of a part of an import, of which there may be none, one or several."""
    file_list = [files] if isinstance(files, Path | FileSource) else files or ()
    return [file if isinstance(file, FileSource) else FileSource(file) for file in file_list]


def sort_files(kinds: Iterable[tuple[FileSource, str]]) -> dict[str, list[FileSource]]:
    """Return files by the parts of an import that they contain, from their kinds. Raises BadInput if there are none."""
    parts: dict[str, list[FileSource]] = {}
    for source, kind in kinds:
        for part in HOLDS.get(kind, ()):
            parts.setdefault("corpus" if part == "documents" else part, []).append(source)
    if not parts:
        raise BadInput(_("No file to import: none was recognised, or all are left out"))
    return parts


def import_collection(name: str, files: ImportFiles, progress: ImportProgress = ignore_progress) -> dict[str, Any]:
    """Import the files into the collection `name`, which is created if missing; return the document for --json.

    The document has the contents of the collection after the import (`pairs`: candidates;
    `judgments`: reference grades, of qrels and gold, and all other imported ones) and the changes
    (`sources`: candidates by what found them; `grades_below_zero`: not judged and left out;
    `qrels`: grades by file of qrels; `labels_changed`: labels that imported people's grades resolved).

    Raises BadInput, with file and line if possible; then nothing is changed.
    """
    with transaction.atomic():
        report = _Import(name, files, progress).run()
        # A dry run does all of the work, so that it finds all problems, and rolls it back.
        if files.dry_run:
            transaction.set_rollback(True)
    return report


def ensure_collection(name: str, grades: int | None = None) -> tuple[Collection, bool]:
    """Return the collection of this name, and whether it was created. Raises BadInput for a name that none can have."""
    try:
        Collection(name=name, grades=grades or 3).clean_fields()
    except ValidationError as error:
        raise BadInput(f"Collection name {name!r}: {'; '.join(error.messages)}") from None
    return Collection.objects.get_or_create(name=name, defaults={"grades": grades or 3})


class _Import:
    """An import within its transaction: the locked collection, and the rows left out so far."""

    def __init__(self, name: str, files: ImportFiles, progress: ImportProgress) -> None:
        self.files, self.options, self.sources, self.progress = files, files.options, files.sources, progress
        staging.plan_for_bulk()
        grades = self.options.grades
        # Created first, since a missing row cannot be locked.
        row, self.is_new = ensure_collection(name, grades)
        # Judgments and items may be added meanwhile: their foreign keys take a weaker lock, which this one permits.
        self.collection = hold(Collection.objects, row.pk, no_key=True)
        if grades not in (None, self.collection.grades):
            message = _('The collection "%(name)s" has %(grades)s: change that in its settings.')
            raise BadOption("grades", message % {"name": name, "grades": self.collection.grades})
        if self.options.document_format not in (None, self.collection.document_format):
            if Document.objects.filter(collection=self.collection).exists():
                message = _("The collection has texts in another format: change that in its settings.")
                raise BadOption("document_format", message)
            self.collection.document_format = self.options.document_format
            self.collection.save(update_fields=["document_format"])
        self.is_html = self.collection.document_format == Collection.Formats.HTML
        self.left_out = LeftOut(self.options.skip_unknown, self.options.keep_self)
        self.stage = candidates.Stage(self.collection, files.assessor_kind(), self.left_out, progress)
        self.empty: set[str] = set()  # Ids of documents without text that are kept.

    def run(self) -> dict[str, Any]:
        """Import the contents of the files; return the report.

        1. Documents and queries.
        2. Candidate pairs, and grades without assessors.
        3. Files of grades that name their assessors.
        4. Runs, which the benchmark stores.
        """
        documents = self.import_texts(Document, self.sources["corpus"], self.read_documents)
        by_position = self.options.query_ids == "position"
        read_queries = partial(records.read_queries, by_position=by_position, html=self.is_html)
        queries = self.import_texts(Query, self.sources["queries"], read_queries)
        self.left_out.stage_selves(self.collection)
        staging.create_temporary_table("import_candidate", candidates.CANDIDATE)
        staging.create_temporary_table("import_grade", judgments.GRADE)
        unjudged, graded_rows = self.stage_files()
        pairs = candidates.write_pairs(self.collection, update=self.options.update)
        sources = count_sources()
        for keep_sources in SOURCE_KEEPERS if sources else ():
            keep_sources(self.collection, sources)
        graded, labels = self.write_grades()
        # Files of pairs may also name the assessors of their grades.
        pair_tables = ((source, tables.read_table(source)) for source in self.sources["pairs"])
        with_assessors = [source for source, table in pair_tables if table and table.has_assessors]
        for source in [*self.sources["judgments"], *with_assessors]:
            added, pair_counts = self.import_judgments(source)
            pairs, graded = _add_up(pairs, pair_counts), _add_up(graded, (added.new, 0, added.unchanged))
            unjudged, labels = unjudged + added.unjudged, labels + added.labels_changed
        runs, runs_taken = 0, list[str]()
        for keep in RUN_KEEPERS if self.options.keep_runs and self.sources["runs"] else ():
            new_runs, taken = keep(self.collection, self.sources["runs"], self.options)
            runs, runs_taken = runs + new_runs, runs_taken + taken
        counts = {"documents": documents, "queries": queries, "pairs": pairs, "judgments": graded}
        new, updated, unchanged = (
            {kind: kind_counts[position] for kind, kind_counts in counts.items()} for position in range(3)
        )
        if any(documents) and not self.files.dry_run:
            full_text.request_index(self.collection.pk)
        row_count = sum([*new.values(), *updated.values()])
        table_statistics.renew_statistics(row_count, Document, Query, Pair, Judgment)
        current = {"collection": self.collection, "is_current": True}
        (imported,) = fetch_row(
            """SELECT count(*) FROM current_judgment j JOIN corpus_assessor a ON a.id = j.assessor_id
               WHERE a.collection_id = %(c)s AND (a.kind = 'reference' OR j.step = 'import')""",
            c=self.collection.pk,
        )
        return {
            "collection": self.collection.name,
            "documents": Document.objects.filter(**current).count(),
            "queries": Query.objects.filter(**current).count(),
            "pairs": Pair.objects.filter(collection=self.collection, is_candidate=True).count(),
            "judgments": imported,
            "new": new,
            "updated": updated,
            "unchanged": unchanged,
            **self.left_out.report(),
            "sources": sources,
            "runs": runs,
            "runs_taken": runs_taken,
            "empty_documents": len(self.empty),
            "long_documents": count_long_documents(self.collection),
            "grades_below_zero": unjudged,
            "qrels": graded_rows,
            "labels_changed": labels,
            "changed": self.is_new or bool(runs) or bool(row_count),
            "dry_run": self.files.dry_run,
        }

    def read_documents(self, source: FileSource) -> Iterator[TextRecord]:
        for document in records.read_documents(source, html=self.is_html):
            if not document.text or document.text.isspace():
                if self.options.empty != "keep":
                    message = _('document "%(id)s" has no text; choose to keep documents without text')
                    raise source.bad(document.line, message % {"id": document.id}, "empty")
                self.empty.add(document.id)
            yield document

    def import_texts(self, table: texts.Table, sources: list[FileSource], rows: texts.Rows) -> Counts:
        """Import documents or queries. Raises BadInput if they are needed, and there are none."""
        total = (0, 0, 0)
        for source in sources:
            note_progress = partial(_note_all, self.progress, sum(total))
            text_options: dict[str, Any] = {
                "update": self.options.update,
                "left_out": self.left_out,
                "progress": note_progress,
                "same_queries": self.stage.same_queries if table is Query and source in self.sources["pairs"] else None,
            }
            total = _add_up(total, texts.move_in(self.collection, table, source, rows, **text_options))
        # Queries alone need no documents: a web search can find some later.
        others = (self.sources[part] for part in ("qrels", "judgments", "pairs", "runs"))
        has_only_queries = self.sources["queries"] and not (any(others) or self.options.bm25 or self.options.static)
        if sources or (table is Document and has_only_queries):
            return total
        if not table.objects.filter(collection=self.collection, is_current=True).exists():
            raise BadInput(
                _(
                    "No file contains documents, and the collection has none: choose the column with the document "
                    "text, or add a file of documents"
                )
                if table is Document
                else _(
                    "No file contains queries, and the collection has none: choose the column with the query text, "
                    "or add a file of queries"
                )
            )
        return total

    def stage_files(self) -> tuple[int, dict[str, int]]:
        """Stage all candidates and grades; return the number of grades below 0, and of grades by file of qrels."""
        unjudged = 0
        graded: dict[str, int] = {}
        scale = self.collection.grades, self.collection.relevant_from
        pairs, qrels = self.sources["pairs"], self.sources["qrels"]
        for number, source in enumerate(pairs):
            unjudged += self.stage.stage_pairs(pairs, number, records.read_pairs(source, *scale))
        for source in self.sources["runs"]:
            self.stage.stage_run(source, top_of_run(source, self.options.depth))
        for number, source in enumerate(qrels):
            earlier = partial(_note_all, self.progress, sum(graded.values()) + unjudged)
            staged = self.stage.stage_qrels(qrels, number, read_grades(source, *scale), earlier)
            graded[str(source)], unjudged = staged[0], unjudged + staged[1]
            if self.files.qrels_are_candidates:
                candidates.stage_graded_pairs()
        if self.options.bm25:
            self.stage.stage_bm25(self.options.bm25)
        if self.options.static:
            self.stage.stage_static(self.options.static)
        return unjudged, graded

    def write_grades(self) -> tuple[Counts, int]:
        """Store the staged grades as judgments; return counts and the number of changed labels.

        Raises BadInput for a grade that the collection has with another value, unless updates are chosen.
        """
        judgments.add_pairs(self.collection)
        (staged,) = fetch_row("SELECT count(*) FROM import_grade")
        for name, part in (("gold", "pairs"), ("qrels", "qrels")):
            if not self.sources[part] or not staged or self.options.update:
                continue
            if change := staging.fetch_one(judgments.FIRST_CHANGE, a=self.stage.ensure_assessor(name)):
                number, line, now, before = change
                message = _("grade %(grade)s, but the collection has %(before)s; choose to update what changed")
                raise self.sources[part][number].bad(line, message % {"grade": now, "before": before}, "update")
        new, replaced = judgments.store_judgments()
        settles = staged and self.stage.kind == Assessor.Kind.HUMAN_IMPORT
        labels = judgments.resolve_staged(self.collection) if settles else 0
        return (new, replaced, max(0, staged - new - replaced)), labels

    def import_judgments(self, source: FileSource) -> tuple[assess.AddedJudgments, Counts]:
        """Store grades that name their assessors; return the counts of judgments and of pairs."""
        kind = self.files.assessor_kind(named=True)
        staged, bad = assess.stage_judgments(
            self.collection, source, "import", kind, self.progress, self.stage.same_queries
        )
        accepted = {assess.DUPLICATE, *([assess.UNKNOWN] if self.options.skip_unknown else [])}
        # The first bad row of a kind that is not accepted is refused.
        others = sorted((line, problem, reason) for reason in bad.counts if reason not in accepted
                        for line, problem in bad.first[reason])  # fmt: skip
        if others:
            line, problem, reason = others[0]
            if reason != assess.UNKNOWN:
                raise source.bad(line, problem)
            message = _("%(problem)s; choose to leave out such rows")
            raise source.bad(line, message % {"problem": problem}, "skip_unknown")
        self.left_out.repeated["judgments"] += bad.counts[assess.DUPLICATE]
        self.left_out.note_unknown(source, bad.counts[assess.UNKNOWN], bad.first[assess.UNKNOWN])
        pairs = (0, 0, 0)
        if self.files.qrels_are_candidates:
            staging.create_temporary_table("import_candidate", candidates.CANDIDATE)
            candidates.stage_graded_pairs()
            pairs = candidates.write_pairs(self.collection, update=self.options.update)
        return assess.store_staged(self.collection, staged), pairs


def _add_up(first: Counts, second: Counts) -> Counts:
    return first[0] + second[0], first[1] + second[1], first[2] + second[2]


def _note_all(progress: ImportProgress, before: int, noun: str, rows: int) -> None:
    """Report the progress over all files of a kind, of which `before` rows came from earlier files."""
    progress(noun, before + rows)
