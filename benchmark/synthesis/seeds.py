"""Seeds of a synthesis: queries of a collection or file, and example personas."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from django.utils.translation import gettext as _

from benchmark.synthesis.bundles import EXAMPLES, draw_seeds
from corpus.errors import BadInput
from corpus.formats.files import FileSource, read_text
from corpus.importing import records
from corpus.models import Collection, Query

QUERIES = "queries"  # The seeds are the collection's own.
MOST_PERSONAS = 1_000
LONGEST_PERSONA = 500  # Characters.


@dataclass(frozen=True, slots=True)
class Seed:
    """A query that is rewritten. `query`: its primary key; None: it came from a file."""

    id: str
    text: str
    query: int | None = None


def collection_seeds(collection: Collection) -> list[Seed]:
    """The current queries that people or importers brought, by their ids."""
    found = Query.objects.filter(collection=collection, is_current=True).exclude(metadata__contains={"synthetic": True})
    rows = found.order_by("external_id").values_list("external_id", "text", "pk")
    return [Seed(*row) for row in rows if row[1].strip()]


def file_seeds(path: Path) -> list[Seed]:
    """The queries of a file, in any form that the import reads. Raises BadInput with the line."""
    source, seen = FileSource(path), dict[str, int]()
    found = []
    for query in records.read_queries(source, by_position=False):
        if query.id in seen:
            raise source.bad(query.line, f'the id "{query.id}" stands already in line {seen[query.id]}')
        seen[query.id] = query.line
        found.append(Seed(query.id, query.text))
    return found


def choose_seeds(collection: Collection, source: str, *, seed: int, limit: int | None) -> list[Seed]:
    """The seeds of a synthesis: so many, drawn by `seed`. Raises BadInput where there are none."""
    known = collection_seeds(collection) if source == QUERIES else file_seeds(Path(source))
    if not known:
        raise BadInput(
            _("%(name)s has no query to begin from: import queries, or name a file of seeds")
            % {"name": collection.name}
            if source == QUERIES
            else f"{source} holds no query"
        )
    chosen = set(draw_seeds((one.id for one in known), seed, limit))
    return [one for one in known if one.id in chosen]


@cache
def bundled_personas() -> tuple[str, ...]:
    """The examples that Quorum brings along."""
    return _clean_lines(Path(__file__).with_name("personas.txt").read_text(encoding="utf-8"))


def read_personas(path: Path) -> tuple[str, ...]:
    """The personas of a file, one a line. Raises BadInput: too few, too many or too long."""
    found = _clean_lines(read_text(path))
    if not EXAMPLES <= len(found) <= MOST_PERSONAS:
        raise BadInput(f"{path}: {len(found)} different personas: give {EXAMPLES} to {MOST_PERSONAS:,}, one a line")
    if long := next((one for one in found if len(one) > LONGEST_PERSONA), None):
        raise BadInput(f"{path}: a persona has {len(long):,} characters: give {LONGEST_PERSONA} at most")
    return found


def _clean_lines(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(line.strip() for line in text.splitlines() if line.strip()))
