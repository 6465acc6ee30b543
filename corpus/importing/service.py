"""`import_collection`: one transaction that adds what the files hold, or nothing at all."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
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
from corpus.importing.detection import HOLDS, SEVERAL
from corpus.importing.grades import read_grades
from corpus.importing.left_out import LeftOut
from corpus.importing.run_lines import top_of_run
from corpus.importing.staging import ImportProgress, ignore_progress
from corpus.importing.table_records import TextRecord
from corpus.long_documents import count_long_documents
from corpus.models import Assessor, Collection, Document, Judgment, Pair, Query
from corpus.search import full_text

GivenFile = Path | FileSource
PEOPLE, REFERENCE = "human", "reference"


@dataclass(frozen=True, slots=True)
class ImportFiles:
    """The files of an import, and its options. Documents and queries may be left out where the collection has them."""

    corpus: GivenFile | tuple[GivenFile, ...] | None = None  # Of several, as train, dev and test.
    queries: GivenFile | tuple[GivenFile, ...] | None = None
    qrels: tuple[GivenFile, ...] = ()  # Of several, as the splits of a BEIR folder, all are taken together.
    judgments: tuple[GivenFile, ...] = ()  # Grades that name their assessors.
    pairs: GivenFile | tuple[GivenFile, ...] | None = None
    runs: tuple[GivenFile, ...] = ()
    bm25: int = 0
    depth: int = 10
    qrels_pairs: bool = False
    grades: int | None = None  # The highest grade; None: the collection's own, 3 for a new one.
    # What the grades are: human (they settle pairs), judge or reference (they measure); "": human where the file names
    # its assessors, else reference.
    graded_by: str = ""
    by_position: bool = False
    keep_empty: bool = False
    update: bool = False
    skip_unknown: bool = False  # Leave out rows that name no known query or document.
    keep_self: bool = False  # A query that is a document stays a candidate of itself.
    keep_runs: bool = False  # Runs are kept as runs, too, and not only as candidates.
    dry_run: bool = False

    @property
    def qrels_are_candidates(self) -> bool:
        """True if the pairs of the qrels are to be judged: when asked for, or when nothing else names candidates."""
        return self.qrels_pairs or not (self.pairs or self.runs or self.bm25)

    @property
    def holds_only_queries(self) -> bool:
        """True if nothing of this import needs a document: a web search can find documents for the queries later."""
        return bool(self.queries) and not (self.pairs or self.qrels or self.judgments or self.runs or self.bm25)

    @property
    def assessor_kind(self) -> Assessor.Kind:
        """Kind of the assessor of grades in files that name no assessor."""
        return assess.KINDS[self.graded_by or REFERENCE]

    @property
    def named_assessor_kind(self) -> Assessor.Kind:
        """Kind of the assessors that files name themselves."""
        return assess.KINDS[self.graded_by or PEOPLE]


# Who keeps runs registers here: (collection, files, import) -> how many are new, and names that had a run already. The
# benchmark does.
RUN_KEEPERS: list[Callable[[Collection, list[FileSource], ImportFiles], tuple[int, list[str]]]] = []


def list_files(given: GivenFile | list[GivenFile] | tuple[GivenFile, ...] | None) -> list[GivenFile]:
    """Return the files of a part of an import, of which there may be none, one or several."""
    if isinstance(given, tuple | list):
        return list(given)
    return [given] if given else []


def plan_import(found: Iterable[tuple[FileSource, str]], **options: Any) -> ImportFiles:
    """Return the import of files by their kinds, of which there may be several. Raises BadInput for none at all."""
    given: dict[str, list[FileSource]] = {}
    several: dict[str, list[FileSource]] = {kind: [] for kind in SEVERAL}
    names = {"documents": "corpus", "queries": "queries", "pairs": "pairs"}
    for source, kind in found:
        for one in HOLDS.get(kind, ()):
            if one in several:
                several[one].append(source)
            else:
                given.setdefault(one, []).append(source)
    if not given and not any(several.values()):
        raise BadInput(_("No file to import: none was recognised, or all are left out"))
    options |= {names[kind]: sources[0] if len(sources) == 1 else tuple(sources) for kind, sources in given.items()}
    options |= {kind: tuple(sources) for kind, sources in several.items()}
    return ImportFiles(**options)


def import_collection(name: str, files: ImportFiles, progress: ImportProgress = ignore_progress) -> dict[str, Any]:
    """Import the files into the collection `name`, which is made when missing.

    Returns what --json says of it: what the collection holds now (`pairs`: candidates, to be judged; `judgments`:
    reference grades, of qrels and gold, and all others that were imported), and what the import did
    (`grades_below_zero`: not judged, and left out; `qrels`: grades in each file of qrels, by its name;
    `labels_changed`: labels that imported people's grades settled).

    Raises BadInput, with file and line where there is one, and then nothing is changed.
    """
    sources, empty = _open_sources(files), set[str]()
    left_out = LeftOut(files.skip_unknown, files.keep_self)

    def read_documents(source: FileSource) -> Iterator[TextRecord]:
        for document in records.read_documents(source):
            if not document.text or document.text.isspace():
                if not files.keep_empty:
                    said = _('document "%(id)s" has no text; choose to keep documents without text')
                    raise source.bad(document.line, said % {"id": document.id}, "empty")
                empty.add(document.id)
            yield document

    with transaction.atomic():
        staging.plan_for_bulk()
        collection, is_new = _lock_collection(name, files)
        read_queries = partial(records.read_queries, by_position=files.by_position)
        options: dict[str, Any] = {"update": files.update, "left_out": left_out, "progress": progress}
        needed = not files.holds_only_queries
        documents = _import_texts(collection, Document, sources["corpus"], read_documents, needed=needed, **options)
        queries = _import_texts(collection, Query, sources["queries"], read_queries, **options)
        left_out.stage_selves(collection)
        staging.create_temporary_table("import_candidate", candidates.CANDIDATE)
        staging.create_temporary_table("import_grade", judgments.GRADE)
        unjudged, graded_rows = _stage_files(collection, files, sources, left_out, progress)
        pairs = candidates.write_pairs(collection, update=files.update)
        graded, labels = _write_grades(collection, sources, files)
        for source in [*sources["judgments"], *filter(_names_assessors, sources["pairs"])]:
            added, more = _import_judgments(collection, source, files, left_out, progress)
            pairs = _add_up(pairs, more)
            graded = _add_up(graded, (added.new, 0, added.unchanged))
            unjudged, labels = unjudged + added.unjudged, labels + added.labels_changed
        runs, runs_taken = 0, list[str]()
        for keep in RUN_KEEPERS if files.keep_runs and sources["runs"] else ():
            new, taken = keep(collection, sources["runs"], files)
            runs, runs_taken = runs + new, runs_taken + taken
        changes = _describe_changes({"documents": documents, "queries": queries, "pairs": pairs, "judgments": graded})
        report = {
            "collection": name,
            **_count_contents(collection),
            **changes,
            **left_out.report(),
            "runs": runs,
            "runs_taken": runs_taken,
            "empty_documents": len(empty),
            "long_documents": count_long_documents(collection),
            "grades_below_zero": unjudged,
            "qrels": graded_rows,
            "labels_changed": labels,
            "changed": is_new or bool(runs) or any(changes["new"].values()) or any(changes["updated"].values()),
            "dry_run": files.dry_run,
        }
        # A dry run does all of the work, so that it finds what the import would find, and then takes it back.
        if files.dry_run:
            transaction.set_rollback(True)
        elif any(documents):
            full_text.request_index(collection.pk)
        written = sum([*changes["new"].values(), *changes["updated"].values()])
        table_statistics.renew_statistics(written, Document, Query, Pair, Judgment)
    return report


def _describe_changes(counted: dict[str, tuple[int, int, int]]) -> dict[str, dict[str, int]]:
    """Return how many rows of each kind are new, updated and unchanged, by what became of them."""
    names = ("new", "updated", "unchanged")
    return {name: {kind: three[at] for kind, three in counted.items()} for at, name in enumerate(names)}


def _import_judgments(
    collection: Collection, source: FileSource, files: ImportFiles, left_out: LeftOut, progress: ImportProgress
) -> tuple[assess.AddedJudgments, tuple[int, int, int]]:
    """Store grades that name their assessors; return what was added, and the counts of the pairs written for them."""
    staged, bad = assess.stage_judgments(collection, source, "import", files.named_assessor_kind, progress)
    accepted = {assess.DUPLICATE, *([assess.UNKNOWN] if files.skip_unknown else [])}
    bad.refuse_others(source, accepted)
    left_out.repeated["judgments"] += bad.counts[assess.DUPLICATE]
    left_out.note_unknown(source, bad.counts[assess.UNKNOWN], bad.first[assess.UNKNOWN])
    pairs = (0, 0, 0)
    if files.qrels_are_candidates:
        staging.create_temporary_table("import_candidate", candidates.CANDIDATE)
        candidates.stage_graded_pairs()
        pairs = candidates.write_pairs(collection, update=files.update)
    return assess.store_staged(collection, staged), pairs


def _names_assessors(source: FileSource) -> bool:
    """Return whether a file of pairs also holds grades with the names of their assessors."""
    table = tables.read_table(source)
    return table is not None and table.has_assessors


def _add_up(before: tuple[int, int, int], more: tuple[int, int, int]) -> tuple[int, int, int]:
    return before[0] + more[0], before[1] + more[1], before[2] + more[2]


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
        total, told = (0, 0, 0), options.pop("progress")
        for source in sources:
            earlier = partial(_note_all, told, sum(total))
            total = _add_up(total, texts.move_in(collection, table, source, rows, progress=earlier, **options))
        return total
    if needed and not table.objects.filter(collection=collection, is_current=True).exists():
        if table is Document:
            raise BadInput(
                _(
                    "No file contains documents, and the collection has none: choose the column "
                    "that holds the document text, or add a file of documents"
                )
            )
        raise BadInput(
            _(
                "No file contains queries, and the collection has none: choose the column that "
                "holds the query text, or add a file of queries"
            )
        )
    return 0, 0, 0


def _open_sources(files: ImportFiles) -> dict[str, list[FileSource]]:
    """Look for every file before anything is read. Raises BadInput for a missing one and for bad numbers."""
    for name, least in (("bm25", 0), ("depth", 1)):
        if getattr(files, name) < least:
            raise BadOption(name, f"Enter a number from {least}.")
    if files.graded_by not in ("", *assess.KINDS):
        raise BadOption("graded_by", f"Choose one of {', '.join(assess.KINDS)}, not {files.graded_by}.")
    if files.grades is not None and not 1 <= files.grades <= 100:
        raise BadOption("grades", f"The highest grade is a number from 1 to 100, not {files.grades}.")
    given = {"corpus": files.corpus, "queries": files.queries, "pairs": files.pairs}
    named = {what: list_files(file) for what, file in given.items()}
    named |= {"qrels": list(files.qrels), "judgments": list(files.judgments), "runs": list(files.runs)}
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
        raise BadInput(f"Collection name {name!r}: {'; '.join(error.messages)}") from None
    # First it must exist: a row that is not there yet cannot be locked.
    found, is_new = Collection.objects.get_or_create(name=name, defaults={"grades": files.grades or 3})
    # Judgments and items may come in meanwhile: their foreign keys take a weaker lock than this one excludes.
    collection = hold(Collection.objects, found.pk, no_key=True)
    if files.grades not in (None, collection.grades):
        raise BadOption("grades", f'The collection "{name}" has {collection.grades}: change that in its settings.')
    return collection, is_new


def _stage_files(
    collection: Collection,
    files: ImportFiles,
    sources: dict[str, list[FileSource]],
    left_out: LeftOut,
    progress: ImportProgress,
) -> tuple[int, dict[str, int]]:
    """Stage all candidates and grades; return the number of grades below 0, and the grades of each file of qrels."""
    unjudged = 0
    graded: dict[str, int] = {}
    scale, kind = (collection.grades, collection.relevant_from), files.assessor_kind
    for number, source in enumerate(sources["pairs"]):
        pairs = records.read_pairs(source, *scale)
        unjudged += candidates.stage_candidates(collection, sources["pairs"], number, pairs, kind, left_out, progress)
    for source in sources["runs"]:
        candidates.stage_run(collection, source, top_of_run(source, files.depth), left_out, progress)
    for number, source in enumerate(sources["qrels"]):
        earlier = partial(_note_all, progress, sum(graded.values()) + unjudged)
        rows = read_grades(source, *scale)
        staged = candidates.stage_qrels(collection, sources["qrels"], number, rows, kind, left_out, earlier)
        graded[str(source)], unjudged = staged[0], unjudged + staged[1]
        if files.qrels_are_candidates:
            candidates.stage_graded_pairs()
    if files.bm25:
        candidates.stage_bm25(collection, files.bm25, left_out, progress)
    return unjudged, graded


def _note_all(progress: ImportProgress, before: int, what: str, rows: int) -> None:
    """Tell how many rows of all files of a kind came in, of which some came `before`."""
    progress(what, before + rows)


def _write_grades(
    collection: Collection, sources: dict[str, list[FileSource]], files: ImportFiles
) -> tuple[tuple[int, int, int], int]:
    """Make judgments of the staged grades; return how many are new, replace another grade, and are the same as before,
    and the number of labels that they changed.

    Raises BadInput for a grade that differs from the collection's, unless the import updates.
    """
    judgments.add_pairs(collection)
    staged = staging.fetch_number("SELECT count(*) FROM import_grade")
    for name, source in (("gold", sources["pairs"]), ("qrels", sources["qrels"])):
        if not source or not staged or files.update:
            continue
        assessor = judgments.ensure_assessor(collection, files.assessor_kind, name)
        if change := judgments.first_change(assessor.pk):
            number, line, now, before = change
            said = _("grade %(grade)s, but the collection has %(before)s; choose to update what changed")
            raise source[number].bad(line, said % {"grade": now, "before": before}, "update")
    new, replaced = judgments.store_judgments()
    labels = 0
    if staged and files.assessor_kind == Assessor.Kind.HUMAN_IMPORT:
        labels = judgments.resolve_staged(collection)
    return (new, replaced, max(0, staged - new - replaced)), labels


def _count_contents(collection: Collection) -> dict[str, int]:
    current = {"collection": collection, "is_current": True}
    return {
        "documents": Document.objects.filter(**current).count(),
        "queries": Query.objects.filter(**current).count(),
        "pairs": Pair.objects.filter(collection=collection, is_candidate=True).count(),
        "judgments": staging.fetch_number(
            """SELECT count(*) FROM current_judgment j JOIN corpus_assessor a ON a.id = j.assessor_id
               WHERE a.collection_id = %(c)s AND (a.kind = 'reference' OR j.step = 'import')""",
            {"c": collection.pk},
        ),
    }
