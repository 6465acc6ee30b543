"""Readers of qrels and run files, recognised by content; problems are reported with their lines. Pure."""

import math
import struct
from array import array
from collections.abc import Mapping, Sequence
from pathlib import Path

from django.utils.translation import gettext as _

from corpus.errors import BadInput
from corpus.formats.files import MAX_ID, FileSource
from corpus.importing.grades import read_grades
from corpus.importing.run_lines import read_run_lines

_FLOAT32 = struct.Struct("f")
TOP_GRADE = 1_000_000_000
LISTED_PROBLEMS = 20  # The others are counted.


def read_qrels(path: Path, fields: Mapping[str, str] | None = None) -> dict[str, dict[str, int]]:
    """Read qrels: query id -> document id -> grade. `fields`: the meaning of columns without a known header.

    Raises BadInput for bad rows and for a pair with two grades. Grades below 0 stay: such a pair is
    in the pool and not judged, as in trec_eval.
    """
    source = FileSource(path, fields=fields)
    qrels: dict[str, dict[str, int]] = {}
    problems: list[str] = []
    for row in read_grades(source, TOP_GRADE, by_ids=True):
        if row.problem:
            problems.append(f"{source.name_line(row.line)}: {row.problem}")
        # A pair may be listed twice with the same grade, as in some published qrels.
        elif qrels.setdefault(row.query, {}).setdefault(row.document, row.grade) != row.grade:
            template = _('document "%(document)s" has another grade for query "%(query)s" above')
            problem = template % {"document": row.document, "query": row.query}
            problems.append(f"{source.name_line(row.line)}: {problem}")
    if problems:
        raise BadInput(list_problems(path, problems))
    if not qrels:
        raise BadInput(_("%(file)s contains no grades: there is nothing to measure") % {"file": path})
    return qrels


def describe_line(line: int, problem: str) -> str:
    """Describe a problem with a line of a file, with the line's number."""
    return _("line %(line)s: %(problem)s") % {"line": line, "problem": problem}


def list_problems(path: Path, problems: Sequence[str]) -> str:
    """Return the first problems and their total: `FILE: line 3: ...; line 7: ... and 5 more (25 lines in all)`."""
    values: dict[str, object] = {"file": path, "problems": "; ".join(problems[:LISTED_PROBLEMS])}
    if len(problems) <= LISTED_PROBLEMS:
        return _("%(file)s: %(problems)s") % values
    template = _("%(file)s: %(problems)s and %(more)s more (%(total)s lines in all)")
    return template % {**values, "more": f"{len(problems) - LISTED_PROBLEMS:,}", "total": f"{len(problems):,}"}


def read_run(path: Path, fields: Mapping[str, str] | None = None) -> dict[str, dict[str, float]]:
    """Read a run: query id -> document id -> score, best first. Raises BadInput for bad lines and duplicates.

    `fields`: the meaning of columns without a known header.
    """
    file = RunFile(path, fields)
    if file.problems:
        raise BadInput(file.problems.describe(path))
    run: dict[str, dict[str, float]] = {}
    for query, lines in file.queries.items():
        # By score, then by document id, both descending. Scores are float32, so that ties are those of trec_eval.
        documents = [file.documents[position] for position in lines.documents]
        ranked = sorted(zip(lines.scores, documents, strict=True), reverse=True)
        run[query] = {document: score for score, document in ranked}
    return run


class Problems:
    """The first problem of each line of a file."""

    def __init__(self) -> None:
        self._lines: dict[int, str] = {}

    def add(self, line: int, problem: str) -> None:
        """Keep the first problem of a line."""
        self._lines.setdefault(line, problem)

    def __bool__(self) -> bool:
        return bool(self._lines)

    def describe(self, path: Path) -> str:
        """Describe the problems in the order of the lines."""
        return list_problems(path, [describe_line(line, problem) for line, problem in sorted(self._lines.items())])


class RunLines:
    """The lines of one query: positions in the file's documents, scores, and line numbers."""

    __slots__ = ("documents", "lines", "scores")

    def __init__(self) -> None:
        self.documents, self.scores, self.lines = array("i"), array("f"), array("q")


class RunFile:
    """A run read from a file, about 16 bytes a line, with its problems by line.

    TREC's column of ranks is ignored, as in trec_eval: the scores decide. In MS MARCO's runs of
    three columns (query, document, rank) the first rank gets the highest score. Raises BadInput for
    a file without lines.
    """

    def __init__(self, path: Path | FileSource, fields: Mapping[str, str] | None = None) -> None:
        self.problems = Problems()
        self.documents: list[str] = []  # The distinct document ids of the file.
        self.queries: dict[str, RunLines] = {}
        self.tag = ""  # The name that the file gives its run.
        self.lines = 0  # Number of valid lines.
        self._read(path if isinstance(path, FileSource) else FileSource(path, fields=fields))
        if not self.lines and not self.problems:
            raise BadInput(_("%(file)s contains no lines and is not a run") % {"file": path})

    def _read(self, source: FileSource) -> None:
        """Read the lines, of which bad ones and duplicates become problems."""
        positions: dict[str, int] = {}
        # 1. Read the lines by query.
        queries, problems = self.queries, self.problems
        for number, query, document, score, tag, problem in read_run_lines(source):
            self.tag = tag or self.tag
            if problem:
                problems.add(number, problem)
                continue
            value = _parse_float32(score)
            if not math.isfinite(value):
                template = _("the score is infinite: %(score)s")
                if math.isnan(value):
                    template = _("the score is not a number: %(score)s")
                problems.add(number, template % {"score": repr(score[:40])})
                continue
            if max(len(query), len(document)) > MAX_ID:
                problems.add(number, _("an id is longer than %(most)s characters") % {"most": MAX_ID})
                continue
            run_lines = queries.get(query)
            if run_lines is None:
                run_lines = queries[query] = RunLines()
            # Positions instead of ids: an id of 20 characters is stored once, not for each line.
            run_lines.documents.append(positions.setdefault(document, len(positions)))
            run_lines.scores.append(value)
            run_lines.lines.append(number)
            self.lines += 1
        self.documents = list(positions)

        # 2. Find documents that are listed twice.
        for query, run_lines in queries.items():
            if len(set(run_lines.documents)) == len(run_lines.documents):
                continue
            first_lines: dict[int, int] = {}
            for position, line in zip(run_lines.documents, run_lines.lines, strict=True):
                if first_lines.setdefault(position, line) != line:
                    template = _('document "%(document)s" is listed twice for query "%(query)s" (line %(line)s)')
                    values = {"document": self.documents[position], "query": query, "line": first_lines[position]}
                    problems.add(line, template % values)


def _parse_float32(text: str) -> float:
    """Parse a number as float32; NaN for text that is not a number, inf for a number that is too large."""
    if "_" in text:  # Only Python accepts underscores in numbers.
        return math.nan
    try:
        return _FLOAT32.unpack(_FLOAT32.pack(float(text)))[0]  # type: ignore[no-any-return]
    except ValueError:
        return math.nan
    except OverflowError:
        return math.inf


def write_run(path: Path, ranking: dict[str, dict[str, float]], tag: str) -> int:
    """Write a TREC run, documents by score, then id descending; return the number of lines."""
    lines = 0
    # Renamed when complete, so that nobody reads half a run.
    partial_path = path.with_name(f".{path.name}.part")
    with partial_path.open("x", encoding="utf-8") as file:
        for query, documents in ranking.items():
            pairs = sorted(sorted(documents.items(), reverse=True), key=lambda pair: -pair[1])
            for rank, (document, score) in enumerate(pairs, 1):
                file.write(f"{query} Q0 {document} {rank} {score:.9g} {tag}\n")
                lines += 1
    partial_path.rename(path)
    return lines
