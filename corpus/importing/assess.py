"""`import_judgments`: grades that people, judges or a reference gave elsewhere."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.db import transaction

from corpus import table_statistics
from corpus.errors import BadInput
from corpus.importing import candidates, judgments, staging
from corpus.importing.files import FileSource
from corpus.importing.grades import read_grades
from corpus.importing.staging import ImportProgress, escape_copy_text, ignore_progress
from corpus.labels import resolve_where
from corpus.models import Assessor, Collection, Judgment, Pair

KINDS = {
    "human": Assessor.Kind.HUMAN_IMPORT,
    "judge": Assessor.Kind.JUDGE_IMPORT,
    "reference": Assessor.Kind.REFERENCE,
}
SHOWN = 20  # Bad rows that the error names.


class _BadRows:
    """Bad rows: how many of each kind, where each kind begins, and the first ones as (line, problem).

    The kinds are malformed, out-of-range, unknown, duplicate, conflicting.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.begins: dict[str, int] = {}
        self.first: list[tuple[int, str]] = []

    def add(self, kind: str, count: int, first: list[tuple[int, str]]) -> None:
        """Add `count` rows of a kind; `first` are the first of them, in the order of their lines."""
        self.counts[kind] += count
        self.begins.setdefault(kind, first[0][0])
        # Only so many are kept: a file of another format has millions of bad rows.
        self.first = sorted([*self.first, *first])[:SHOWN]

    def refusal(self, source: FileSource) -> BadInput:
        """Return one line that says how many rows there are of each kind, and names the first ones."""
        total = self.counts.total()
        kinds = ", ".join(f"{n} {kind} from line {self.begins[kind]}" for kind, n in sorted(self.counts.items()))
        named = "; ".join(f"line {line}: {problem}" for line, problem in self.first)
        more = f" (the first {SHOWN} of {total})" if total > SHOWN else ""
        what = "1 bad row" if total == 1 else f"{total} bad rows"
        return BadInput(f"{source}: {what} ({kinds}): {named}{more}; --skip-invalid leaves them out")


@transaction.atomic
def import_judgments(
    collection: Collection,
    path: Path,
    *,
    assessor: str,
    kind: str,
    skip_invalid: bool = False,
    progress: ImportProgress = ignore_progress,
) -> dict[str, Any]:
    """Append the grades of a qrels file or CSV; return what was done, as the command prints it with --json.

    Human grades settle pairs that no person of the collection judged. `assessor` names who graded where the file does
    not. Raises BadInput for bad rows unless `skip_invalid`: then they are left out, and of rows that contradict or
    repeat each other the first is taken.
    """
    source = FileSource(path)
    staging.plan_for_bulk()
    collection = Collection.objects.select_for_update(no_key=True).get(pk=collection.pk)
    bad, unjudged = _stage_grades(collection, source, assessor, progress)
    people = _ensure_assessors(collection, KINDS[kind])
    _find_bad(bad)
    if bad.counts and not skip_invalid:
        raise bad.refusal(source)
    judgments.add_pairs(collection)
    new, replaced = judgments.store_judgments()
    table_statistics.renew_statistics(new + replaced, Pair, Judgment)
    good = staging.execute_sql("SELECT 1 FROM import_grade")
    changed = 0
    if kind == "human":
        graded = "(query_id, document_id) IN (SELECT query_id, document_id FROM import_grade)"
        changed = resolve_where(f"collection_id = %s AND {graded}", [collection.pk])
    return {
        "collection": collection.name,
        "kind": kind,
        "assessors": people,
        "judgments": new,
        "unchanged": good - new,
        "grades_below_zero": unjudged,
        "skipped": dict(sorted(bad.counts.items())),
        "labels_changed": changed,
    }


def _stage_grades(
    collection: Collection, source: FileSource, assessor: str, progress: ImportProgress
) -> tuple[_BadRows, int]:
    """Stage the rows that can be read in `import_found`; return the bad ones, and the number of grades below 0."""
    bad = _BadRows()

    def lines() -> Iterator[str]:
        for row in read_grades(source, collection.grades):
            if row.problem:
                bad.add(row.kind, 1, [(row.line, row.problem)])
                continue
            names = map(escape_copy_text, (row.query, row.document, row.assessor or assessor))
            yield f"{row.line}\t{row.grade}\t" + "\t".join(names) + "\n"

    columns = "line, grade, query, document, assessor"
    return bad, candidates.stage_lines(collection, lines(), columns, "judgments", progress)


def _ensure_assessors(collection: Collection, kind: Assessor.Kind) -> list[str]:
    """Make an assessor of everyone whom the file names; return the names in order."""
    names = [row[0] for row in staging.fetch_all("SELECT DISTINCT assessor FROM import_found ORDER BY 1")]
    longest = max(names, key=len, default="")
    if len(longest) > 150:
        raise BadInput(f"the assessor's name is longer than 150 characters: {longest[:40]!r}")
    for name in names:
        judgments.ensure_assessor(collection, kind, name)
    staging.create_temporary_table("import_assessor", "name text, assessor_id bigint")
    staging.execute_sql(
        """INSERT INTO import_assessor SELECT name, id FROM corpus_assessor
           WHERE collection_id = %(c)s AND kind = %(kind)s AND name = ANY(%(names)s)""",
        {"c": collection.pk, "kind": str(kind), "names": names},
    )
    return names


# Grades of known ids, each beside the first row of the same pair and assessor, and what the assessor said before.
_COMPARED = """
WITH said AS MATERIALIZED (
    SELECT p.query_id, p.document_id, j.assessor_id, j.grade
    FROM import_assessor a JOIN judgment_head j ON j.assessor_id = a.assessor_id
    JOIN corpus_pair p ON p.id = j.pair_id
    WHERE j.aspect_id IS NULL AND j.step = 'import'
)
SELECT f.line, f.grade, f.query_id, f.document_id, a.assessor_id, said.grade AS before,
       row_number() OVER same AS place, min(f.line) OVER same AS first_line, first_value(f.grade) OVER same AS first
FROM import_found f JOIN import_assessor a ON a.name = f.assessor
LEFT JOIN said ON said.query_id = f.query_id AND said.document_id = f.document_id
                  AND said.assessor_id = a.assessor_id
WHERE f.query_id IS NOT NULL AND f.document_id IS NOT NULL AND f.grade IS NOT NULL
WINDOW same AS (PARTITION BY f.query_id, f.document_id, f.assessor ORDER BY f.line)
"""


def _find_bad(bad: _BadRows) -> None:
    """Fill `import_grade` with the good rows; tell `bad` about the others."""
    staging.create_temporary_table("import_grade", judgments.GRADE)
    staging.create_temporary_table("import_checked", "line int, kind text, problem text")
    staging.execute_sql(
        """INSERT INTO import_checked SELECT line, 'unknown', CASE WHEN query_id IS NULL
             THEN format('no query has the id "%%s"', query) ELSE format('no document has the id "%%s"', document) END
           FROM import_found WHERE query_id IS NULL OR document_id IS NULL""",
        {},
    )
    staging.execute_sql(
        f"DROP TABLE IF EXISTS import_compared; CREATE TEMP TABLE import_compared ON COMMIT DROP AS {_COMPARED}"
    )
    staging.execute_sql(
        """INSERT INTO import_checked
           SELECT line, CASE WHEN grade = first THEN 'duplicate' ELSE 'conflicting' END,
                  CASE WHEN grade = first THEN format('the pair stands already in line %%s', first_line)
                       ELSE format('grade %%s, but line %%s has %%s', grade, first_line, first) END
           FROM import_compared WHERE place > 1
           UNION ALL
           SELECT line, 'conflicting', format('grade %%s, but the collection has %%s of this assessor', grade, before)
           FROM import_compared WHERE place = 1 AND before IS NOT NULL AND before <> grade""",
        {},
    )
    staging.execute_sql(
        """INSERT INTO import_grade SELECT line, query_id, document_id, grade, assessor_id FROM import_compared
           WHERE place = 1 AND (before IS NULL OR before = grade)"""
    )
    for kind, count in staging.fetch_all("SELECT kind, count(*) FROM import_checked GROUP BY kind"):
        first = staging.fetch_all(
            "SELECT line, problem FROM import_checked WHERE kind = %(kind)s ORDER BY line LIMIT %(n)s",
            {"kind": kind, "n": SHOWN},
        )
        bad.add(kind, count, [(line, problem) for line, problem in first])
