"""`import_collection`: one transaction that adds what the files hold, or nothing at all."""

from collections.abc import Iterator
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
from corpus.models import Assessor, Collection, Document, Judgment, Pair, Query


@dataclass(frozen=True, slots=True)
class ImportFiles:
    """The files of an import, and its options."""

    corpus: Path
    queries: Path
    qrels: Path | None = None
    pairs: Path | None = None
    runs: tuple[Path, ...] = ()
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

    def read_documents(source: FileSource) -> Iterator[records.TextRecord]:
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
        documents = texts.move_in(collection, Document, sources["corpus"][0], read_documents, **options)
        queries = texts.move_in(collection, Query, sources["queries"][0], read_queries, **options)
        staging.create_temporary_table("import_candidate", candidates.CANDIDATE)
        staging.create_temporary_table("import_grade", judgments.GRADE)
        unjudged = _stage_files(collection, files, sources, progress)
        pairs = candidates.write_pairs(collection, update=files.update)
        graded = _write_grades(collection, sources, update=files.update)
        counted = {"documents": documents, "queries": queries, "pairs": pairs, "judgments": graded}
        new = {what: added for what, (added, _) in counted.items()}
        updated = {what: changed for what, (_, changed) in counted.items()}
        report = ImportReport(
            collection=name,
            **_count_contents(collection),
            new=new,
            updated=updated,
            empty_documents=empty,
            grades_below_zero=unjudged,
            changed=is_new or any(new.values()) or any(updated.values()),
            dry_run=files.dry_run,
        )
        # A dry run does all of the work, so that it finds what the import would find, and then takes it back.
        if files.dry_run:
            transaction.set_rollback(True)
        table_statistics.renew_statistics(sum([*new.values(), *updated.values()]), Document, Query, Pair, Judgment)
    return report


def _open_sources(files: ImportFiles) -> dict[str, list[FileSource]]:
    """Look for every file before anything is read. Raises BadInput for a missing one and for bad numbers."""
    if files.bm25 < 0 or files.depth < 1:
        raise BadInput("--bm25 takes a number from 0, --depth one from 1")
    if files.grades is not None and not 1 <= files.grades <= 100:
        raise BadInput(f"--grades {files.grades}: the highest grade is a number from 1 to 100")
    named = {"corpus": [files.corpus], "queries": [files.queries], "runs": list(files.runs)}
    named["qrels"] = [files.qrels] if files.qrels else []
    named["pairs"] = [files.pairs] if files.pairs else []
    return {what: [FileSource(path) for path in paths] for what, paths in named.items()}


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


def _write_grades(collection: Collection, sources: dict[str, list[FileSource]], *, update: bool) -> tuple[int, int]:
    """Make judgments of the staged grades; return how many are new, and how many replace another grade.

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
    return judgments.store_judgments()


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
