"""Candidate pairs from files, runs and BM25, and the reference grades of files."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from django.utils.translation import gettext as _

from corpus.errors import BadOption, OptionWouldHelp
from corpus.formats.files import FileSource
from corpus.importing import judgments, staging
from corpus.importing.grades import GradeRow
from corpus.importing.left_out import LeftOut
from corpus.importing.sources import Source
from corpus.importing.staging import ImportProgress, escape_copy_text, fetch_one
from corpus.importing.table_records import CandidateRecord
from corpus.models import Assessor, Collection, Query
from corpus.search import static_embeddings
from store.sql import execute, fetch_row, fetch_rows

LINE = """line int, query text, document text, teacher_score float8, grade int, assessor text, kind text,
    step text DEFAULT 'import', said_at text DEFAULT ''"""
CANDIDATE = "query_id bigint, document_id bigint, teacher_score float8, source int"
FOUND = "line int, query text, document text, teacher_score float8, grade int, assessor text, kind text, step text,\
    said_at text, query_id bigint, document_id bigint"
NAME_SAME = """
UPDATE import_line s SET query = same.id FROM unnest(%(made)s::text[], %(ids)s::text[]) AS same(made, id)
WHERE s.query = same.made
"""
FIND = """
INSERT INTO import_found
SELECT s.*, q.id AS query_id, d.id AS document_id FROM import_line s
LEFT JOIN corpus_query q ON q.collection_id = %(c)s AND q.is_current AND q.external_id = s.query
LEFT JOIN corpus_document d ON d.collection_id = %(c)s AND d.is_current AND d.external_id = s.document
"""
# Pairs, runs and BM25 may name the same pair, and only pairs have a score: max ignores NULL.
MERGE = """
INSERT INTO import_named SELECT query_id, document_id, max(teacher_score), bit_or(source) FROM import_candidate
GROUP BY query_id, document_id
"""
# One grade for a pair with several rows in a file, unless an earlier file graded it.
GRADE_ONCE = """
INSERT INTO import_grade SELECT min(line), query_id, document_id, min(grade), %(assessor)s, %(file)s
FROM import_found f WHERE grade IS NOT NULL AND (%(file)s = 0 OR NOT EXISTS (
    SELECT FROM import_grade g WHERE g.query_id = f.query_id AND g.document_id = f.document_id
      AND g.assessor_id = %(assessor)s)) GROUP BY query_id, document_id
"""
OTHER_GRADE = """SELECT f.line, f.grade, g.file, g.line, g.grade FROM import_found f
    JOIN import_grade g ON g.query_id = f.query_id AND g.document_id = f.document_id AND g.assessor_id = %(assessor)s
    WHERE f.grade <> g.grade ORDER BY f.line LIMIT 1"""
OTHER_SCORE_BEFORE = """SELECT f.line, f.teacher_score, c.teacher_score FROM import_found f
    JOIN import_candidate c ON c.query_id = f.query_id AND c.document_id = f.document_id
    WHERE f.teacher_score <> c.teacher_score ORDER BY 1 LIMIT 1"""
OTHER_SCORE = """
SELECT q.external_id, d.external_id FROM import_named s
JOIN corpus_pair p ON p.query_id = s.query_id AND p.document_id = s.document_id
JOIN corpus_query q ON q.id = p.query_id JOIN corpus_document d ON d.id = p.document_id
WHERE p.teacher_score <> s.teacher_score LIMIT 1
"""
UPDATE_PAIRS = """
UPDATE corpus_pair p SET is_candidate = true, teacher_score = COALESCE(s.teacher_score, p.teacher_score)
FROM import_named s
WHERE p.query_id = s.query_id AND p.document_id = s.document_id AND (
    NOT p.is_candidate OR s.teacher_score IS NOT NULL AND s.teacher_score IS DISTINCT FROM p.teacher_score)
"""
ADD_PAIRS = """
INSERT INTO corpus_pair (collection_id, query_id, document_id, teacher_score, is_candidate, uncertainty)
SELECT %(c)s, query_id, document_id, teacher_score, true, 0 FROM import_named s
WHERE NOT EXISTS (SELECT 1 FROM corpus_pair p WHERE p.query_id = s.query_id AND p.document_id = s.document_id)
ORDER BY query_id, document_id
"""


@dataclass(frozen=True, slots=True)
class Stage:
    """Staging of an import's candidates and grades; `kind` is the kind of the assessors "gold" and "qrels".

    A grade below 0 means not judged: it is left out and counted.
    """

    collection: Collection
    kind: Assessor.Kind
    left_out: LeftOut
    progress: ImportProgress
    # Ids of the collection's queries by the ids that were made from the texts of a file (corpus.importing.texts).
    same_queries: dict[str, str] = field(default_factory=dict)

    def ensure_assessor(self, name: str) -> int:
        """Return the key of the assessor of the files' grades."""
        return judgments.ensure_assessor(self.collection, self.kind, name).pk

    def stage_pairs(self, files: Sequence[FileSource], number: int, rows: Iterable[CandidateRecord]) -> int:
        """Stage a file of pairs; return the number of gold grades below 0. Raises BadInput for contradicting rows."""
        source = files[number]

        def copy_line(row: CandidateRecord) -> str:
            score = "\\N" if row.teacher_score is None else repr(float(row.teacher_score))
            # -1 represents all grades below 0, which may be too small for the column.
            grade = "\\N" if row.gold is None else max(row.gold, -1)
            return f"{row.line}\t{escape_copy_text(row.query)}\t{escape_copy_text(row.document)}\t{score}\t{grade}\n"

        columns = "line, query, document, teacher_score, grade"
        unjudged = stage_lines(
            self.collection, map(copy_line, rows), columns, "pairs", self.progress, self.same_queries
        )
        self.left_out.remove_unknown(source)
        # min and max ignore NULL: a line without a score or grade contradicts no other.
        clash = fetch_one(
            """SELECT max(line), min(line) FROM import_found GROUP BY query_id, document_id
               HAVING count(*) > 1 AND (min(teacher_score) <> max(teacher_score) OR min(grade) <> max(grade))
               ORDER BY 1 LIMIT 1"""
        )
        if clash:
            message = _("the pair is in %(place)s with another teacher_score or gold")
            raise source.bad(clash[0], message % {"place": source.name_line(clash[1])})
        # Rows with several pairs, such as triples, are not counted as repeated.
        pair_rows, lines, pairs = fetch_row(
            "SELECT count(*), count(DISTINCT line), count(DISTINCT (query_id, document_id)) FROM import_found"
        )
        if pair_rows == lines:
            self.left_out.repeated["pairs"] += pair_rows - pairs
        if number and (clash := fetch_one(OTHER_SCORE_BEFORE)):
            message = _("teacher_score %(score)s, but an earlier file has %(before)s for this pair; leave one file out")
            raise source.bad(clash[0], message % {"score": clash[1], "before": clash[2]})
        statement = (
            "INSERT INTO import_candidate SELECT query_id, document_id, teacher_score, %(source)s FROM import_found"
        )
        execute(statement, source=Source.FILES.value)
        if fetch_one("SELECT 1 FROM import_found WHERE grade IS NOT NULL LIMIT 1"):
            self.stage_grades(files, number, "gold")
        return unjudged

    def stage_grades(self, files: Sequence[FileSource], number: int, name: str) -> None:
        """Stage the grades of a file's rows. Raises BadInput for a pair with another grade in an earlier file."""
        values = {"assessor": self.ensure_assessor(name), "file": number}
        if number and (clash := fetch_one(OTHER_GRADE, **values)):
            line, grade, file, earlier_line, before = clash
            message = _("grade %(grade)s, but %(file)s, %(place)s, has %(before)s for this pair; leave one file out")
            other = {"file": files[file], "place": files[file].name_line(earlier_line), "before": before}
            raise files[number].bad(line, message % {"grade": grade, **other})
        execute(GRADE_ONCE, **values)

    def stage_run(self, source: FileSource, rows: Iterable[tuple[int, str, str]]) -> None:
        """Stage the best documents of a run for each query, given as (line, query, document)."""
        lines = (f"{line}\t{escape_copy_text(query)}\t{escape_copy_text(document)}\n" for line, query, document in rows)
        stage_lines(self.collection, lines, "line, query, document", "run lines", self.progress)
        self.left_out.remove_unknown(source)
        self.left_out.selves += execute(
            """DELETE FROM import_found f USING import_self s
               WHERE s.query_id = f.query_id AND s.document_id = f.document_id"""
        )
        statement = "INSERT INTO import_candidate SELECT query_id, document_id, NULL, %(source)s FROM import_found"
        execute(statement, source=Source.RUNS.value)

    def stage_qrels(
        self, files: Sequence[FileSource], number: int, rows: Iterable[GradeRow], progress: ImportProgress
    ) -> tuple[int, int]:
        """Stage a file of qrels; return the numbers of grades, and of those below 0. Raises BadInput for clashes."""
        source = files[number]

        def copy_line(row: GradeRow) -> str:
            if row.problem:
                raise source.bad(row.line, row.problem)
            return f"{row.line}\t{escape_copy_text(row.query)}\t{escape_copy_text(row.document)}\t{row.grade}\n"

        columns = "line, query, document, grade"
        lines = map(copy_line, rows)
        unjudged = stage_lines(self.collection, lines, columns, "judgments", progress, self.same_queries)
        self.left_out.remove_unknown(source)
        # Published qrels repeat lines; only a repeated pair with another grade is ambiguous.
        self.left_out.remove_repeated("judgments", "import_found", "query_id, document_id, grade")
        if twice := staging.first_repeated("import_found", "query_id, document_id"):
            message = _("the pair is already in %(place)s, with another grade")
            raise source.bad(twice[0], message % {"place": source.name_line(twice[1])})
        self.stage_grades(files, number, "qrels")
        return fetch_row("SELECT count(*) FROM import_found WHERE grade IS NOT NULL")[0], unjudged

    def stage_bm25(self, k: int) -> None:
        """Stage the best k documents of each current query by BM25."""
        # Loads scipy, which other imports need not wait for.
        from corpus.search.bm25 import index_for

        index = index_for(self.collection)

        def search(text: str, depth: int) -> list[int]:
            return [key for key, _score in index.search(text, depth)]

        self._stage_ranked(k, search, Source.BM25, "BM25 candidates")

    def stage_static(self, k: int) -> None:
        """Stage the nearest k documents of each current query by static embeddings. Raises BadOption without them."""
        if not static_embeddings.is_available():
            message = _("Static embeddings need wordllama, which is not installed on this machine.")
            raise BadOption("static", message)
        search = static_embeddings.StaticIndex(self.collection).search
        self._stage_ranked(k, search, Source.STATIC, "candidates by static embeddings")

    def _stage_ranked(self, k: int, search: Callable[[str, int], list[int]], source: Source, noun: str) -> None:
        """Stage the best k documents of each current query, without the query itself."""
        queries = Query.objects.filter(collection=self.collection, is_current=True).order_by("pk")
        selves = dict(fetch_rows("SELECT query_id, document_id FROM import_self"))
        # All lines first: COPY occupies the connection from which the queries are read.
        lines = []
        for query, text in queries.values_list("pk", "text").iterator():
            ranked = search(text, k + (query in selves))
            others = [document for document in ranked if document != selves.get(query)]
            self.left_out.selves += len(ranked) - len(others)
            lines += [f"{query}\t{document}\t{source.value}\n" for document in others[:k]]
        staging.copy_lines("import_candidate (query_id, document_id, source)", lines, noun, self.progress)


def stage_graded_pairs() -> None:
    """Stage the pairs of the last qrels as candidates, except for unknown ids."""
    execute(
        """INSERT INTO import_candidate SELECT query_id, document_id, NULL, %(source)s FROM import_found
           WHERE query_id IS NOT NULL AND document_id IS NOT NULL""",
        source=Source.FILES.value,
    )


def stage_lines(
    collection: Collection,
    lines: Iterable[str],
    columns: str,
    noun: str,
    progress: ImportProgress,
    same_queries: Mapping[str, str] | None = None,
) -> int:
    """Copy lines into `import_found` with the keys of their ids; return the number of grades below 0.

    `same_queries`: ids of queries by the ids that stand for them in the lines.
    """
    staging.create_temporary_table("import_line", LINE)
    staging.copy_lines(f"import_line ({columns})", lines, noun, progress)
    # Only the grade is left out: the pair was not judged, and may be a candidate.
    unjudged = execute("UPDATE import_line SET grade = NULL WHERE grade < 0")
    if same_queries:
        execute(NAME_SAME, made=list(same_queries), ids=list(same_queries.values()))
    execute("ANALYZE import_line")
    staging.create_temporary_table("import_found", FOUND)
    execute(FIND, c=collection.pk)
    return unjudged


def write_pairs(collection: Collection, *, update: bool) -> tuple[int, int, int]:
    """Create or update the pairs of the candidates; return the numbers of new, updated and unchanged pairs."""
    staging.create_temporary_table("import_named", CANDIDATE)
    execute(MERGE)
    execute("ANALYZE import_named")
    updated = total = 0
    if fetch_one("SELECT 1 FROM corpus_pair WHERE collection_id = %(c)s LIMIT 1", c=collection.pk):
        if not update and (other := fetch_one(OTHER_SCORE)):
            message = _("Query %(query)s, document %(document)s has another teacher score: update what changed")
            raise OptionWouldHelp("update", message % {"query": other[0], "document": other[1]})
        updated = execute(UPDATE_PAIRS)
        (total,) = fetch_row("SELECT count(*) FROM import_named")
    # In the order of the unique index, so that it grows at its end.
    new = execute(ADD_PAIRS, c=collection.pk)
    return new, updated, max(0, total - new - updated)
