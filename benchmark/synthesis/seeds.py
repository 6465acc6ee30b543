"""Seeds of a synthesis, which are queries of a collection or a file, and example personas."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from benchmark.synthesis.bundles import EXAMPLES
from corpus.errors import BadInput
from corpus.formats.files import FileSource, read_text
from corpus.importing import records
from corpus.models import Collection, Query

QUERIES = "queries"  # The source that means the queries of the collection.
MOST_PERSONAS = 1_000
LONGEST_PERSONA = 500  # Characters.


@dataclass(frozen=True, slots=True)
class Seed:
    """A text to write a query from; `query` is its primary key, None for a query from a file."""

    id: str
    text: str
    query: int | None = None


def collection_seeds(collection: Collection) -> list[Seed]:
    """Return the current queries that no model wrote, in the order of their ids."""
    queries = Query.objects.filter(collection=collection, is_current=True).exclude(
        metadata__contains={"synthetic": True}
    )
    rows = queries.order_by("external_id").values_list("external_id", "text", "pk")
    return [Seed(*row) for row in rows if row[1].strip()]


def file_seeds(path: Path) -> list[Seed]:
    """Read the queries of a file in any format of the import. Raises BadInput with the line."""
    source, seen = FileSource(path), dict[str, int]()
    seeds = []
    for query in records.read_queries(source, by_position=False):
        if query.id in seen:
            raise source.bad(query.line, f'the id "{query.id}" is already in line {seen[query.id]}')
        seen[query.id] = query.line
        seeds.append(Seed(query.id, query.text))
    return seeds


@cache
def bundled_personas() -> tuple[str, ...]:
    """Return the personas that Quorum provides."""
    return _clean_lines(Path(__file__).with_name("personas.txt").read_text(encoding="utf-8"))


def read_personas(path: Path) -> tuple[str, ...]:
    """Read the personas of a file, one a line. Raises BadInput for too few, too many or too long ones."""
    personas = _clean_lines(read_text(path))
    if not EXAMPLES <= len(personas) <= MOST_PERSONAS:
        raise BadInput(f"{path}: {len(personas)} different personas: give {EXAMPLES} to {MOST_PERSONAS:,}, one a line")
    if long := next((persona for persona in personas if len(persona) > LONGEST_PERSONA), None):
        raise BadInput(f"{path}: a persona has {len(long):,} characters: give {LONGEST_PERSONA} at most")
    return personas


def _clean_lines(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(line.strip() for line in text.splitlines() if line.strip()))
