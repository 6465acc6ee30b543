"""No page costs more than 20 statements (issue: money, faults and pages), whoever opens it."""

import psycopg
import pytest

from tests.test_permissions import World, routes

pytestmark = pytest.mark.django_db

MOST = 20
OTHER_FILES = {"export_file", "training_file"}


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What reaches PostgreSQL, through Django or past it; savepoints are the tests' own."""
    seen: list[str] = []
    real = psycopg.Cursor.execute

    def execute(self, query, *args, **options):
        words = query.decode() if isinstance(query, bytes) else str(query)
        if not words.lstrip().upper().startswith(("SAVEPOINT", "RELEASE", "ROLLBACK", "SET LOCAL")):
            seen.append(" ".join(words.split())[:100])
        return real(self, query, *args, **options)

    monkeypatch.setattr(psycopg.Cursor, "execute", execute)
    return seen


@pytest.mark.parametrize("who", ["annotator", "adjudicator", "owner"])
def test_no_page_costs_more_than_twenty_statements(who: str, statements: list[str]) -> None:
    world = World()
    client = world.client(who)
    client.get("/")
    dear, opened = {}, 0
    for route in routes(world):
        if route.name in OTHER_FILES:
            continue
        statements.clear()
        response = client.get(route.path)
        if response.status_code == 200:
            opened += 1
            if len(statements) > MOST:
                dear[route.path] = (len(statements), list(statements))
    assert opened > {"annotator": 8, "adjudicator": 12, "owner": 40}[who]
    assert {path: count for path, (count, _) in dear.items()} == {}
