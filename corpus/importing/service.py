"""`import_collection`: one transaction that adds what the files hold, or nothing at all."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext as _

from corpus import table_statistics
from corpus.errors import BadInput
from corpus.importing import candidates, judgments, records, staging, texts
from corpus.importing.files import FileSource
from corpus.importing.grades import read_grades, top_of_run
from corpus.importing.staging import ImportProgress, ignore_progress
from corpus.importing.table_records import TextRecord
from corpus.models import Assessor, Collection, Document, Judgment, Pair, Query
from corpus.search import full_text

GivenFile = Path | FileSource


@dataclass(frozen=True, slots=True)
class ImportFiles:
    """The files of an import, and its options. Documents and queries may be left out where the collection has them."""

    corpus: GivenFile | None = None
    queries: GivenFile | None = None
    qrels: tuple[GivenFile, ...] = ()  # Of several, as the splits of a BEIR folder, all are taken together.
    pairs: GivenFile | None = None
    runs: tuple[GivenFile, ...] = ()
    bm25: int = 0
    depth: int = 10
    qrels_pairs: bool = False
    grades: int | None = None  # The highest grade; None: the collection's own, 3 for a new one.
    by_position: bool = False
    keep_empty: bool = False
    update: bool = False
    dry_run: bool = False

    @property
    def qrels_are_candidates(self) -> bool:
        """Whether the pairs of the qrels are to be judged: when asked for, or when nothing else names candidates."""
        return self.qrels_pairs or not (self.pairs or self.runs or self.bm25)

    @property
    def holds_only_queries(self) -> bool:
        """Whether nothing is asked for that needs a document: a web search can find some for the queries later."""
        return bool(self.queries) and not (self.pairs or self.qrels or self.runs or self.bm25)


_BOTH = {
    "documents": lambda: _("%(first)s and %(second)s both hold documents; leave one of them out"),
    "queries": lambda: _("%(first)s and %(second)s both hold queries; leave one of them out"),
    "pairs": lambda: _("%(first)s and %(second)s both hold pairs; leave one of them out"),
}


def plan_import(found: Iterable[tuple[FileSource, str]], **options: Any) -> ImportFiles:
    """Return the import of files by their kinds. Raises BadInput for none at all, and for two of a kind.

    Of qrels and runs there may be several.
    """
    given: dict[str, FileSource] = {}
    several: dict[str, list[FileSource]] = {"qrels": [], "runs": []}
    names = {"documents": "corpus", "queries": "queries", "pairs": "pairs"}
    for source, kind in found:
        if kind in several:
            several[kind].append(source)
        for one in ("documents", "queries", "pairs") if kind == "all" else (kind,) if kind in names else ():
            if one in given:
                raise BadInput(_BOTH[one]() % {"first": given[one], "second": source})
            given[one] = source
    if not given and not any(several.values()):
        raise BadInput(_("no file to import: none was recognised, or all are left out"))
    options |= {names[kind]: source for kind, source in given.items()}
    return ImportFiles(qrels=tuple(several["qrels"]), runs=tuple(several["runs"]), **options)


def import_collection(name: str, files: ImportFiles, progress: ImportProgress = ignore_progress) -> dict[str, Any]:
    """Import the files into the collection `name`, which is made when missing.

    Returns what --json says of it: what the collection holds now (`pairs`: candidates, to be judged; `judgments`:
    reference grades, of qrels and gold), and what the import did (`grades_below_zero`: not judged, and left out;
    `qrels`: grades in each file of qrels, by its name).

    Raises BadInput, with file and line where there is one, and then nothing is changed.
    """
    sources = _open_sources(files)
    empty = 0

    def read_documents(source: FileSource) -> Iterator[TextRecord]:
        nonlocal empty
        for document in records.read_documents(source):
            if not document.text or document.text.isspace():
                if not files.keep_empty:
                    said = _('document "%(id)s" has no text; --empty keep takes such documents')
                    raise source.bad(document.line, said % {"id": document.id})
                empty += 1
            yield document

    with transaction.atomic():
        staging.plan_for_bulk()
        collection, is_new = _lock_collection(name, files)
        read_queries = partial(records.read_queries, by_position=files.by_position)
        options: dict[str, Any] = {"update": files.update, "progress": progress}
        needed = not files.holds_only_queries
        documents = _import_texts(collection, Document, sources["corpus"], read_documents, needed=needed, **options)
        queries = _import_texts(collection, Query, sources["queries"], read_queries, **options)
        staging.create_temporary_table("import_candidate", candidates.CANDIDATE)
        staging.create_temporary_table("import_grade", judgments.GRADE)
        unjudged, graded_rows = _stage_files(collection, files, sources, progress)
        pairs = candidates.write_pairs(collection, update=files.update)
        graded = _write_grades(collection, sources, update=files.update)
        counted = {"documents": documents, "queries": queries, "pairs": pairs, "judgments": graded}
        new, updated, unchanged = ({what: three[n] for what, three in counted.items()} for n in range(3))
        report = {
            "collection": name,
            **_count_contents(collection),
            "new": new,
            "updated": updated,
            "unchanged": unchanged,
            "empty_documents": empty,
            "grades_below_zero": unjudged,
            "qrels": graded_rows,
            "changed": is_new or any(new.values()) or any(updated.values()),
            "dry_run": files.dry_run,
        }
        # A dry run does all of the work, so that it finds what the import would find, and then takes it back.
        if files.dry_run:
            transaction.set_rollback(True)
        elif any(documents):
            full_text.request_index(collection.pk)
        table_statistics.renew_statistics(sum([*new.values(), *updated.values()]), Document, Query, Pair, Judgment)
    return report


def _import_texts(
    collection: Collection,
    table: type[Document] | type[Query],
    sources: list[FileSource],
    rows: texts.Rows,
    *,
    needed: bool = True,
    **options: Any,
) -> tuple[int, int, int]:
    """Import the documents or the queries. Raises BadInput where they are needed and neither in files nor here."""
    if sources:
        return texts.move_in(collection, table, sources[0], rows, **options)
    if needed and not table.objects.filter(collection=collection, is_current=True).exists():
        if table is Document:
            raise BadInput(_("no file holds documents, and the collection has none: add a file of documents"))
        raise BadInput(_("no file holds queries, and the collection has none: add a file of queries"))
    return 0, 0, 0


def _open_sources(files: ImportFiles) -> dict[str, list[FileSource]]:
    """Look for every file before anything is read. Raises BadInput for a missing one and for bad numbers."""
    if files.bm25 < 0 or files.depth < 1:
        raise BadInput("--bm25 takes a number from 0, --depth one from 1")
    if files.grades is not None and not 1 <= files.grades <= 100:
        raise BadInput(f"--grades {files.grades}: the highest grade is a number from 1 to 100")
    given = {"corpus": files.corpus, "queries": files.queries, "pairs": files.pairs}
    named = {what: [] if file is None else [file] for what, file in given.items()}
    named |= {"qrels": list(files.qrels), "runs": list(files.runs)}
    return {
        what: [file if isinstance(file, FileSource) else FileSource(file) for file in found]
        for what, found in named.items()
    }


def _lock_collection(name: str, files: ImportFiles) -> tuple[Collection, bool]:
    """Return the collection, locked against another import, and whether it is new."""
    collection = Collection(name=name, grades=files.grades or 3)
    try:
        collection.clean_fields()
    except ValidationError as error:
        raise BadInput(f"collection name {name!r}: {'; '.join(error.messages)}") from None
    _, is_new = Collection.objects.get_or_create(name=name, defaults={"grades": files.grades or 3})
    # Judgments and items may come in meanwhile: their foreign keys take a weaker lock than this one excludes.
    collection = Collection.objects.select_for_update(no_key=True).get(name=name)
    if files.grades not in (None, collection.grades):
        raise BadInput(
            f'--grades {files.grades}: the collection "{name}" has {collection.grades}; configure_collection changes it'
        )
    return collection, is_new


def _stage_files(
    collection: Collection, files: ImportFiles, sources: dict[str, list[FileSource]], progress: ImportProgress
) -> tuple[int, dict[str, int]]:
    """Stage all candidates and grades; return the number of grades below 0, and the grades of each file of qrels."""
    unjudged = 0
    graded: dict[str, int] = {}
    top = collection.grades
    for source in sources["pairs"]:
        unjudged += candidates.stage_candidates(collection, source, records.read_pairs(source, top), progress)
    for source in sources["runs"]:
        candidates.stage_run(collection, source, top_of_run(source, files.depth), progress)
    for number, source in enumerate(sources["qrels"]):
        earlier = partial(_note_all, progress, sum(graded.values()) + unjudged)
        staged = candidates.stage_qrels(collection, sources["qrels"], number, read_grades(source, top), earlier)
        graded[str(source)], unjudged = staged[0], unjudged + staged[1]
        if files.qrels_are_candidates:
            candidates.stage_graded_pairs()
    if files.bm25:
        candidates.stage_bm25(collection, files.bm25, progress)
    return unjudged, graded


def _note_all(progress: ImportProgress, before: int, what: str, rows: int) -> None:
    """Tell how many rows of all files of a kind came in, of which some came `before`."""
    progress(what, before + rows)


def _write_grades(
    collection: Collection, sources: dict[str, list[FileSource]], *, update: bool
) -> tuple[int, int, int]:
    """Make judgments of the staged grades; return how many are new, replace another grade, and are the same as before.

    Raises BadInput for a grade that differs from the collection's, unless `update`.
    """
    judgments.add_pairs(collection)
    for name, source in (("gold", sources["pairs"]), ("qrels", sources["qrels"])):
        if not source or update:
            continue
        assessor = judgments.ensure_assessor(collection, Assessor.Kind.REFERENCE, name)
        if change := judgments.first_change(assessor.pk):
            number, line, now, before = change
            said = _("grade %(grade)s, but the collection has %(before)s; --update takes the new one")
            raise source[number].bad(line, said % {"grade": now, "before": before})
    new, replaced = judgments.store_judgments()
    staged = staging.fetch_number("SELECT count(*) FROM import_grade")
    return new, replaced, max(0, staged - new - replaced)


def _count_contents(collection: Collection) -> dict[str, int]:
    current = {"collection": collection, "is_current": True}
    return {
        "documents": Document.objects.filter(**current).count(),
        "queries": Query.objects.filter(**current).count(),
        "pairs": Pair.objects.filter(collection=collection, is_candidate=True).count(),
        "judgments": staging.fetch_number(
            """SELECT count(*) FROM current_judgment j JOIN corpus_assessor a ON a.id = j.assessor_id
               WHERE a.collection_id = %(c)s AND a.kind = 'reference'""",
            {"c": collection.pk},
        ),
    }
