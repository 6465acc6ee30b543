"""Rows that an import leaves out or counts once: their numbers, and the first of them."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _

from corpus.formats.files import FileSource
from corpus.importing import staging
from corpus.models import Collection
from corpus.search.selves import find_selves
from store.sql import execute, fetch_rows

SHOWN = 5  # Rows with unknown ids that are listed.


@dataclass(slots=True)
class LeftOut:
    """The rows that an import leaves out; `skip_unknown` and `keep_self` are options of the import."""

    skip_unknown: bool = False
    keep_self: bool = False
    repeated: Counter[str] = field(default_factory=Counter)  # Repeated rows, by their kind.
    unknown: int = 0
    first_unknown: list[str] = field(default_factory=list)
    selves: int = 0  # Candidates that are their own query.

    def report(self) -> dict[str, Any]:
        """Return the part of the import's report about these rows."""
        return {
            "repeated": dict(self.repeated),
            "unknown": self.unknown,
            "unknown_first": self.first_unknown,
            "own_document": self.selves,
        }

    def note_unknown(self, source: FileSource, count: int, first: list[tuple[int, str]]) -> None:
        """Count rows with unknown ids; `first` has the first ones as (line, problem)."""
        self.unknown += count
        messages = [str(source.bad(line, problem)) for line, problem in first]
        self.first_unknown = [*self.first_unknown, *messages][:SHOWN]

    def remove_unknown(self, source: FileSource) -> None:
        """Delete the rows of `import_found` with unknown ids, or raise BadInput without `skip_unknown`."""
        condition = "query_id IS NULL OR document_id IS NULL"
        rows = fetch_rows(
            f"""SELECT line, query_id IS NULL, query, document FROM import_found
                WHERE {condition} ORDER BY line LIMIT {SHOWN}"""
        )
        if not rows:
            return
        no_query, no_document = _('no query has the id "%(id)s"'), _('no document has the id "%(id)s"')
        first = [
            (line, no_query % {"id": query} if is_query else no_document % {"id": document})
            for line, is_query, query, document in rows
        ]
        if not self.skip_unknown:
            line, problem = first[0]
            message = _("%(problem)s; choose to leave out such rows")
            raise source.bad(line, message % {"problem": problem}, "skip_unknown")
        self.note_unknown(source, execute(f"DELETE FROM import_found WHERE {condition}"), first)

    def remove_repeated(self, noun: str, table: str, columns: str) -> int:
        """Delete the repeated rows of a staged table; return their number."""
        count = execute(
            f"""DELETE FROM {table} WHERE ctid IN (SELECT ctid FROM (
                  SELECT ctid, row_number() OVER (PARTITION BY {columns} ORDER BY line) AS place FROM {table}) numbered
                WHERE place > 1)"""
        )
        self.repeated[noun] += count
        return count

    def stage_selves(self, collection: Collection) -> None:
        """Fill `import_self` with the queries that are also documents, unless these are kept as candidates."""
        staging.create_temporary_table("import_self", "query_id bigint, document_id bigint")
        if not self.keep_self:
            selves = find_selves(collection).items()
            lines = [f"{query}\t{document}\n" for query, (document, _name) in selves]
            staging.copy_lines("import_self", lines, "queries", staging.ignore_progress)
