"""`import_collection`: one transaction that adds what the files hold, or nothing at all."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction

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
    qrels: GivenFile | None = None
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


def plan_import(found: Iterable[tuple[FileSource, str]], **options: Any) -> ImportFiles:
    """Return the import of files by their kinds. Raises BadInput for two files of one kind, and for none at all."""
    given: dict[str, FileSource] = {}
    runs: list[FileSource] = []
    names = {"documents": "corpus", "queries": "queries", "pairs": "pairs", "qrels": "qrels"}
    for source, kind in found:
        if kind == "runs":
            runs.append(source)
        for one in ("documents", "queries", "pairs") if kind == "all" else (kind,) if kind in names else ():
            if one in given:
                raise BadInput(f"{given[one]} and {source} both hold {one}; leave one of them out")
            given[one] = source
    if not given and not runs:
        raise BadInput("no file to import: none was recognised, or all are left out")
    options |= {names[kind]: source for kind, source in given.items()}
    return ImportFiles(runs=tuple(runs), **options)


@dataclass(frozen=True, slots=True)
class ImportReport:
    """The contents of a collection after an import, and what the import did."""

    collection: str
    documents: int
    queries: int
    pairs: int  # Candidates: pairs to be judged.
    judgments: int  # Reference grades, of qrels and gold.
    new: dict[str, int]
    updated: dict[str, int]
    unchanged: dict[str, int]
    empty_documents: int
    grades_below_zero: int  # Not judged, and left out.
    changed: bool
    dry_run: bool


def import_collection(name: str, files: ImportFiles, progress: ImportProgress = ignore_progress) -> ImportReport:
    """Import the files into the collection `name`, which is made when missing.

    Raises BadInput, with file and line where there is one, and then nothing is changed.
    """
    sources = _open_sources(files)
    empty = 0

    def read_documents(source: FileSource) -> Iterator[TextRecord]:
        nonlocal empty
        for document in records.read_documents(source):
            if not document.text or document.text.isspace():
                if not files.keep_empty:
                    problem = f'document "{document.id}" has no text; --empty keep takes such documents'
                    raise source.bad(document.line, problem)
                empty += 1
            yield document

    with transaction.atomic():
        staging.plan_for_bulk()
        collection, is_new = _lock_collection(name, files)
        read_queries = partial(records.read_queries, by_position=files.by_position)
        options: dict[str, Any] = {"update": files.update, "progress": progress}
        documents = _import_texts(collection, Document, sources["corpus"], read_documents, **options)
        queries = _import_texts(collection, Query, sources["queries"], read_queries, **options)
        staging.create_temporary_table("import_candidate", candidates.CANDIDATE)
        staging.create_temporary_table("import_grade", judgments.GRADE)
        unjudged = _stage_files(collection, files, sources, progress)
        pairs = candidates.write_pairs(collection, update=files.update)
        graded = _write_grades(collection, sources, update=files.update)
        counted = {"documents": documents, "queries": queries, "pairs": pairs, "judgments": graded}
        new, updated, unchanged = ({what: three[n] for what, three in counted.items()} for n in range(3))
        report = ImportReport(
            collection=name,
            **_count_contents(collection),
            new=new,
            updated=updated,
            unchanged=unchanged,
            empty_documents=empty,
            grades_below_zero=unjudged,
            changed=is_new or any(new.values()) or any(updated.values()),
            dry_run=files.dry_run,
        )
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
    **options: Any,
) -> tuple[int, int, int]:
    """Import the documents or the queries. Raises BadInput where there are none, neither in files nor here."""
    if sources:
        return texts.move_in(collection, table, sources[0], rows, **options)
    if not table.objects.filter(collection=collection, is_current=True).exists():
        what = str(table._meta.verbose_name_plural)
        raise BadInput(f"no file holds {what}, and the collection has none: add a file of {what}")
    return 0, 0, 0


def _open_sources(files: ImportFiles) -> dict[str, list[FileSource]]:
    """Look for every file before anything is read. Raises BadInput for a missing one and for bad numbers."""
    if files.bm25 < 0 or files.depth < 1:
        raise BadInput("--bm25 takes a number from 0, --depth one from 1")
    if files.grades is not None and not 1 <= files.grades <= 100:
        raise BadInput(f"--grades {files.grades}: the highest grade is a number from 1 to 100")
    given = {"corpus": files.corpus, "queries": files.queries, "qrels": files.qrels, "pairs": files.pairs}
    named = {what: [] if file is None else [file] for what, file in given.items()} | {"runs": list(files.runs)}
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
) -> int:
    """Stage everything that the files name as candidates and grades; return the number of grades below 0."""
    unjudged = 0
    top = collection.grades
    for source in sources["pairs"]:
        unjudged += candidates.stage_candidates(collection, source, records.read_pairs(source, top), progress)
    for source in sources["runs"]:
        candidates.stage_run(collection, source, top_of_run(source, files.depth), progress)
    for source in sources["qrels"]:
        unjudged += candidates.stage_qrels(
            collection, source, read_grades(source, top), progress, are_candidates=files.qrels_are_candidates
        )
    if files.bm25:
        candidates.stage_bm25(collection, files.bm25, progress)
    return unjudged


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
            line, now, before = change
            raise source[0].bad(line, f"grade {now}, but the collection has {before}; --update takes the new one")
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
