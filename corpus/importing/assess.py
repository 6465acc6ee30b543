"""Import of grades from people, judges or a reference elsewhere (`import_judgments`, and files that name assessors)."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from django.db import transaction
from django.utils.translation import gettext as _

from corpus import table_statistics
from corpus.errors import BadInput, OptionWouldHelp
from corpus.formats.files import FileSource
from corpus.holding import hold
from corpus.importing import candidates, judgments, staging
from corpus.importing.grades import read_grades
from corpus.importing.staging import ImportProgress, escape_copy_text, ignore_progress
from corpus.models import Assessor, Collection, Judgment, Pair
from store.sql import execute, fetch_rows, read_sql

KINDS = {
    "human": Assessor.Kind.HUMAN_IMPORT,
    "judge": Assessor.Kind.JUDGE_IMPORT,
    "reference": Assessor.Kind.REFERENCE,
}
# By the kind in our own judgments.jsonl. People of another collection are not members of this one.
_KINDS_IN_EXPORTS = {kind.value: kind for kind in Assessor.Kind} | {
    Assessor.Kind.PERSON.value: Assessor.Kind.HUMAN_IMPORT,
    Assessor.Kind.JUDGE.value: Assessor.Kind.JUDGE_IMPORT,
}
# Only these resolve labels; reference grades and imported judges only measure (corpus.labels).
_SETTLE = {Assessor.Kind.HUMAN_IMPORT, Assessor.Kind.POLICY}
DUPLICATE, UNKNOWN = "duplicate", "unknown"  # Kinds of bad rows that an import may leave out.
SHOWN = 20  # Bad rows that the error lists.


class AddedJudgments(NamedTuple):
    """Counts of an imported file: `unjudged` grades are below 0; `settles` is true if the grades resolve labels."""

    new: int
    unchanged: int
    unjudged: int
    assessors: list[str]
    skipped: dict[str, int]
    labels_changed: int
    settles: bool


class BadRows:
    """The bad rows of a file: their number by kind (malformed, out-of-range, ...), and the first as (line, problem)."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.first: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)

    def add(self, kind: str, count: int, first: list[tuple[int, str]]) -> None:
        """Add `count` rows of a kind, with the first of them."""
        self.counts[kind] += count
        # Only the first are kept: a file of another format has millions of bad rows.
        self.first[kind] = sorted([*self.first[kind], *first])[:SHOWN]

    def refusal(self, source: FileSource) -> BadInput:
        """Return the error with the number of rows of each kind, and the first rows."""
        total, counts = self.counts.total(), sorted(self.counts.items())
        kinds = ", ".join(f"{n} {kind} from {source.name_line(self.first[kind][0][0])}" for kind, n in counts)
        first = sorted(row for rows in self.first.values() for row in rows)[:SHOWN]
        problems = "; ".join(f"{source.name_line(line)}: {problem}" for line, problem in first)
        more = f" (the first {SHOWN} of {total})" if total > SHOWN else ""
        rows = "1 bad row" if total == 1 else f"{total} bad rows"
        return OptionWouldHelp(
            "skip_invalid", f"{source}: {rows} ({kinds}): {problems}{more}; choose to leave them out"
        )


@transaction.atomic
def import_judgments(
    collection: Collection,
    file: Path | FileSource,
    *,
    assessor: str,
    kind: str,
    skip_invalid: bool = False,
    progress: ImportProgress = ignore_progress,
) -> dict[str, Any]:
    """Append the grades of a qrels file, a table or JSON; return the document for --json.

    Human grades resolve pairs that no member of the collection has judged. `assessor` is the name
    for rows without one, and `kind` the kind of all assessors, except in our own judgments.jsonl,
    which has the kinds. Raises BadInput for bad rows; with `skip_invalid` they are left out, and the
    first of contradicting rows is used. Repeated rows count once.
    """
    source = file if isinstance(file, FileSource) else FileSource(file)
    staging.plan_for_bulk()
    collection = hold(Collection.objects, collection.pk, no_key=True)
    staged, bad = stage_judgments(collection, source, assessor, KINDS[kind], progress)
    if bad.counts.keys() - {DUPLICATE} and not skip_invalid:
        raise bad.refusal(source)
    staged = store_staged(collection, staged)
    table_statistics.renew_statistics(staged.new, Pair, Judgment)
    return {
        "collection": collection.name,
        "kind": kind,
        "assessors": staged.assessors,
        "judgments": staged.new,
        "unchanged": staged.unchanged,
        "grades_below_zero": staged.unjudged,
        "skipped": staged.skipped,
        "labels_changed": staged.labels_changed,
    }


def stage_judgments(
    collection: Collection,
    source: FileSource,
    assessor: str,
    kind: Assessor.Kind,
    progress: ImportProgress,
    same_queries: Mapping[str, str] | None = None,
) -> tuple[AddedJudgments, BadRows]:
    """Stage the grades of a file for `store_staged`; return the counts and the bad rows.

    1. Copy the rows that can be read into `import_found`.
    2. Create the assessors that they name.
    3. Move the good rows into `import_grade`.
    """
    bad, unjudged = _stage_grades(collection, source, assessor, kind, progress, same_queries)
    # Create the assessors that the file names.
    assessors = fetch_rows("SELECT DISTINCT kind, assessor FROM import_found ORDER BY 1, 2")
    for kind, name in assessors:
        if len(name) > 150:
            raise BadInput(_("The assessor's name is longer than 150 characters: %(name)r") % {"name": name[:40]})
        judgments.ensure_assessor(collection, Assessor.Kind(kind), name)
    staging.create_temporary_table("import_assessor", "kind text, name text, assessor_id bigint")
    execute(
        """INSERT INTO import_assessor SELECT kind, name, id FROM corpus_assessor a
           WHERE collection_id = %(c)s AND (kind, name) IN (SELECT DISTINCT kind, assessor FROM import_found)""",
        c=collection.pk,
    )
    _find_bad(source, bad)
    settles = any(Assessor.Kind(kind) in _SETTLE for kind, _name in assessors)
    names = sorted({name for _kind, name in assessors})
    return AddedJudgments(0, 0, unjudged, names, dict(sorted(bad.counts.items())), 0, settles), bad


def store_staged(collection: Collection, staged: AddedJudgments) -> AddedJudgments:
    """Append the judgments that `stage_judgments` staged, and resolve the labels of their pairs."""
    judgments.add_pairs(collection)
    new, _replaced = judgments.store_judgments()
    total = execute("SELECT 1 FROM import_grade")
    labels_changed = judgments.resolve_staged(collection) if staged.settles else 0
    return staged._replace(new=new, unchanged=total - new, labels_changed=labels_changed)


def _stage_grades(
    collection: Collection,
    source: FileSource,
    assessor: str,
    kind: Assessor.Kind,
    progress: ImportProgress,
    same_queries: Mapping[str, str] | None,
) -> tuple[BadRows, int]:
    """Stage the rows that can be read in `import_found`; return the bad rows, and the number of grades below 0."""
    bad = BadRows()

    def lines() -> Iterator[str]:
        for row in read_grades(source, collection.grades, collection.relevant_from):
            if row.problem:
                bad.add(row.kind, 1, [(row.line, row.problem)])
                continue
            assessor_kind = _KINDS_IN_EXPORTS.get(row.assessor_kind) if row.assessor_kind else kind
            if assessor_kind is None:
                message = _("the kind is %(value)r; it is one of %(kinds)s")
                kinds = ", ".join(_KINDS_IN_EXPORTS)
                bad.add("malformed", 1, [(row.line, message % {"value": row.assessor_kind[:40], "kinds": kinds})])
                continue
            step = Judgment.Step.ADJUDICATION if row.step == Judgment.Step.ADJUDICATION else Judgment.Step.IMPORT
            texts = (row.query, row.document, row.assessor or assessor, assessor_kind.value, step.value, row.said_at)
            yield f"{row.line}\t{row.grade}\t" + "\t".join(map(escape_copy_text, texts)) + "\n"

    columns = "line, grade, query, document, assessor, kind, step, said_at"
    return bad, candidates.stage_lines(collection, lines(), columns, "judgments", progress, same_queries)


COMPARED = """line int, grade smallint, query_id bigint, document_id bigint, assessor_id bigint, step text,
    said_at text, before smallint, place bigint, first_line int, first smallint"""
_COMPARED = read_sql(__file__, "compare_grades")


def _find_bad(source: FileSource, bad: BadRows) -> None:
    """Fill `import_grade` with the good rows, and add the others to `bad`, with messages that format() completes."""
    staging.create_temporary_table("import_grade", judgments.GRADE)
    staging.create_temporary_table("import_checked", "line int, kind text, problem text")
    execute(
        """INSERT INTO import_checked SELECT line, 'unknown', CASE WHEN query_id IS NULL
             THEN format(%(no_query)s, query) ELSE format(%(no_document)s, document) END
           FROM import_found WHERE query_id IS NULL OR document_id IS NULL""",
        no_query=_('no query has the id "%(id)s"') % {"id": "%1$s"},
        no_document=_('no document has the id "%(id)s"') % {"id": "%1$s"},
    )
    staging.create_temporary_table("import_compared", COMPARED)
    execute(_COMPARED)
    execute(
        """INSERT INTO import_checked
           SELECT line, CASE WHEN grade = first THEN 'duplicate' ELSE 'conflicting' END,
                  CASE WHEN grade = first THEN format(%(twice)s, first_line)
                       ELSE format(%(other)s, grade, first_line, first) END
           FROM import_compared WHERE place > 1
           UNION ALL
           SELECT line, 'conflicting', format(%(before)s, grade, before)
           FROM import_compared WHERE place = 1 AND before IS NOT NULL AND before <> grade""",
        twice=_("the pair is already in %(place)s") % {"place": source.name_line("%1$s")},
        other=_("grade %(grade)s, but %(place)s has %(other)s")
        % {"grade": "%1$s", "place": source.name_line("%2$s"), "other": "%3$s"},
        before=_("grade %(grade)s, but the collection has %(before)s of this assessor")
        % {"grade": "%1$s", "before": "%2$s"},
    )
    execute(
        """INSERT INTO import_grade
           SELECT line, query_id, document_id, grade, assessor_id, 0, step, said_at FROM import_compared
           WHERE place = 1 AND (before IS NULL OR before = grade)"""
    )
    first_rows = "SELECT line, problem FROM import_checked WHERE kind = %(kind)s ORDER BY line LIMIT %(n)s"
    for kind, count in fetch_rows("SELECT kind, count(*) FROM import_checked GROUP BY kind"):
        bad.add(kind, count, [(line, problem) for line, problem in fetch_rows(first_rows, kind=kind, n=SHOWN)])
