"""Qrels and runs from files, recognised by content; what is wrong is told with its line. Pure."""

import math
import struct
from array import array
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from django.utils.translation import gettext as _

from corpus.errors import BadInput
from corpus.formats.files import MAX_ID, FileSource
from corpus.importing.grades import read_grades
from corpus.importing.run_lines import read_run_lines

_FLOAT = struct.Struct("f")
TOP_GRADE = 1_000_000_000
SHOWN = 20  # Bad lines that are listed; the rest is counted.


def read_qrels(path: Path, fields: Mapping[str, str] | None = None) -> dict[str, dict[str, int]]:
    """Read qrels: query id -> document id -> grade. `fields`: what columns are, where their headers do not say so.

    Raises BadInput for bad rows and for a pair with two grades. A grade below 0 stays: the pair is
    in the pool, and nobody judged it, as trec_eval has it.
    """
    source = FileSource(path, fields=fields)
    found: dict[str, dict[str, int]] = {}
    bad: list[str] = []
    for row in read_grades(source, TOP_GRADE, by_ids=True):
        if row.problem:
            bad.append(f"{source.place(row.line)}: {row.problem}")
        # A pair may stand twice with the same grade, as some published qrels do.
        elif found.setdefault(row.query, {}).setdefault(row.document, row.grade) != row.grade:
            words = _('document "%(document)s" has another grade for query "%(query)s" above')
            told = words % {"document": row.document, "query": row.query}
            bad.append(f"{source.place(row.line)}: {told}")
    if bad:
        raise BadInput(list_problems(path, bad))
    if not found:
        raise BadInput(_("%(file)s contains no grades: there is nothing to measure") % {"file": path})
    return found


def describe_line(line: int, problem: str) -> str:
    """Describe a problem with a line of a file, with the line's number."""
    return _("line %(line)s: %(problem)s") % {"line": line, "problem": problem}


def list_problems(path: Path, bad: Sequence[str]) -> str:
    """The first twenty and the total: `FILE: line 3: ...; line 7: ... and 5 more (25 lines in all)`."""
    told: dict[str, object] = {"file": path, "problems": "; ".join(bad[:SHOWN])}
    if len(bad) <= SHOWN:
        return _("%(file)s: %(problems)s") % told
    words = _("%(file)s: %(problems)s and %(more)s more (%(total)s lines in all)")
    return words % {**told, "more": f"{len(bad) - SHOWN:,}", "total": f"{len(bad):,}"}


def read_run(path: Path, fields: Mapping[str, str] | None = None) -> dict[str, dict[str, float]]:
    """Read a run: query id -> document id -> score, best first. Raises BadInput for bad lines, and duplicates.

    `fields`: what columns are, where their headers do not say so.
    """
    found = RunFile(path, fields)
    found.problems.refuse(path)
    return {query: dict(one.best_first(found.documents)) for query, one in found.queries.items()}


class Problems:
    """Problems of a file, by line: the first of each line, told together."""

    def __init__(self) -> None:
        self._lines: dict[int, str] = {}

    def add(self, line: int, problem: str) -> None:
        """Keep the first problem of a line."""
        self._lines.setdefault(line, problem)

    def __bool__(self) -> bool:
        return bool(self._lines)

    def told(self, path: Path) -> str:
        """Tell the problems in the order of the lines."""
        return list_problems(path, [describe_line(line, problem) for line, problem in sorted(self._lines.items())])

    def refuse(self, path: Path) -> None:
        """Raises BadInput when there is a problem."""
        if self:
            raise BadInput(self.told(path))


class RunLines:
    """The lines of one query: positions in the file's documents, scores, numbers of the lines."""

    __slots__ = ("documents", "lines", "scores")

    def __init__(self) -> None:
        self.documents, self.scores, self.lines = array("i"), array("f"), array("q")

    def best_first(self, names: Sequence[str]) -> Iterator[tuple[str, float]]:
        """Documents and scores by score (float32) descending, then by document id descending."""
        # float32 as trec_eval compares, so that ties are the same ones.
        pairs = zip(self.scores, (names[at] for at in self.documents), strict=True)
        return ((name, score) for score, name in sorted(pairs, reverse=True))


class RunFile:
    """A run read from a file, about 16 bytes a line, with its problems by line.

    TREC's column of ranks is not read, as trec_eval does not: the scores decide. In MS MARCO's runs
    of three columns (query, document, rank) the first rank has the highest score. Raises BadInput
    for a file without lines.
    """

    def __init__(self, path: Path | FileSource, fields: Mapping[str, str] | None = None) -> None:
        self.problems = Problems()
        self.documents: list[str] = []
        """Every document id that the file names, once."""
        self.queries: dict[str, RunLines] = {}
        self.tag = ""
        self.lines = 0
        self._read(path if isinstance(path, FileSource) else FileSource(path, fields=fields))
        self._find_duplicates()
        if not self.lines and not self.problems:
            raise BadInput(_("%(file)s holds no line: it is not a run") % {"file": path})

    def _read(self, source: FileSource) -> None:
        known: dict[str, int] = {}
        queries, problems = self.queries, self.problems
        for number, query, document, score, tag, problem in read_run_lines(source):
            self.tag = tag or self.tag
            if problem:
                problems.add(number, problem)
                continue
            value = _parse_float32(score)
            if not math.isfinite(value):
                is_none = math.isnan(value)
                words = _("the score is not a number: %(score)s") if is_none else _("the score is infinite: %(score)s")
                problems.add(number, words % {"score": repr(score[:40])})
                continue
            if max(len(query), len(document)) > MAX_ID:
                problems.add(number, _("an id is longer than %(most)s characters") % {"most": MAX_ID})
                continue
            of = queries.get(query)
            if of is None:
                of = queries[query] = RunLines()
            # Numbers for names: a document id of 20 letters stands once, not in each line.
            of.documents.append(known.setdefault(document, len(known)))
            of.scores.append(value)
            of.lines.append(number)
            self.lines += 1
        self.documents = list(known)

    def _find_duplicates(self) -> None:
        for query, of in self.queries.items():
            if len(set(of.documents)) == len(of.documents):
                continue
            first: dict[int, int] = {}
            for at, line in zip(of.documents, of.lines, strict=True):
                if first.setdefault(at, line) != line:
                    words = _('document "%(document)s" is listed twice for query "%(query)s" (line %(line)s)')
                    told = {"document": self.documents[at], "query": query, "line": first[at]}
                    self.problems.add(line, words % told)


def _parse_float32(text: str) -> float:
    """Parse a number as float32 holds it; NaN for what is none, inf for what is too large."""
    if "_" in text:  # Python's own way to write a number, and nobody else's
        return math.nan
    try:
        return _FLOAT.unpack(_FLOAT.pack(float(text)))[0]  # type: ignore[no-any-return]
    except ValueError:
        return math.nan
    except OverflowError:
        return math.inf


def write_run(path: Path, ranking: dict[str, dict[str, float]], tag: str) -> int:
    """A TREC run, queries in the given order, documents by score, id descending; lines."""
    lines = 0
    # Renamed when it is whole: nobody reads half a run.
    part = path.with_name(f".{path.name}.part")
    with part.open("x", encoding="utf-8") as file:
        for query, documents in ranking.items():
            ordered = sorted(sorted(documents.items(), reverse=True), key=lambda one: -one[1])
            for rank, (document, score) in enumerate(ordered, 1):
                file.write(f"{query} Q0 {document} {rank} {score:.9g} {tag}\n")
                lines += 1
    part.rename(path)
    return lines
