"""No page costs more than 20 statements beside Django's two for session and account, whoever opens it."""

import re

import psycopg
import pytest

from annotation.models import Assignment, Role
from corpus.labels import rebuild_labels
from corpus.models import Collection, Item, Judgment, Label
from judges.models import Tally
from tests.evidence import make_judgment
from tests.factories import client_of, make_collection, make_member
from tests.judging_scene import make_scene
from tests.site.test_permissions import World, routes
from tests.stages import first_quick

pytestmark = pytest.mark.django_db

MOST = 20
SIGNED_IN = ('FROM "django_session"', 'FROM "annotation_user" WHERE "annotation_user"."id" = ')
OTHER_FILES = {"export_file", "training_file"}


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What reaches PostgreSQL, through Django or past it; savepoints are the tests' own."""
    seen: list[str] = []
    real = psycopg.Cursor.execute

    def execute(self, query, *args, **options):
        words = query.decode() if isinstance(query, bytes) else str(query)
        own = words.lstrip().upper().startswith(("SAVEPOINT", "RELEASE", "ROLLBACK", "SET LOCAL"))
        if not own and not any(part in " ".join(words.split()) for part in SIGNED_IN):
            seen.append(" ".join(words.split())[:100])
        return real(self, query, *args, **options)

    monkeypatch.setattr(psycopg.Cursor, "execute", execute)
    return seen


@pytest.mark.parametrize("who", first_quick(["adjudicator", "owner", "annotator"]))
def test_no_page_costs_more_than_twenty_statements(who: str, statements: list[str]) -> None:
    world = World()
    client = world.client(who)
    client.get("/")
    costs = {}
    for route in routes(world):
        if route.name in OTHER_FILES:
            continue
        statements.clear()
        response = client.get(route.path)
        if response.status_code == 200:
            costs[route.path] = len(statements)
    assert len(costs) > {"annotator": 8, "adjudicator": 12, "owner": 40}[who]
    assert {path: cost for path, cost in costs.items() if cost > MOST} == {}


def make_conflicts(collection: Collection, count: int) -> None:
    """Pairs about which Alice and Bob do not agree."""
    people = [(make_member(collection, "alice"), 1), (make_member(collection, "bob"), 0)]
    for item in make_scene(collection, count, overlap=2):
        for member, grade in people:
            judgment = make_judgment(item.pair, member.assessor, grade, item=item, step="final")
            about = {"state": "done", "lease_until": "2030-01-01T00:00Z", "judgment": judgment}
            Assignment.objects.create(item=item, membership=member, **about)
    Item.objects.update(state="conflict", taken=2, done=2)


def test_a_decision_of_an_adjudicator_costs_seven_statements_and_brings_the_next(statements: list[str]) -> None:
    collection = make_collection("books")
    make_conflicts(collection, 5)
    client = client_of(make_member(collection, "carol", Role.ADJUDICATOR))
    page = client.get("/c/books/adjudicate/").content.decode()
    costs = []
    for left in (4, 3, 2, 1):
        item = int(re.findall(r'data-item="(\d+)"', page)[0])
        answer = {"item": item, "grade": 1, "milliseconds": "5000", "idle": "1000"}
        statements.clear()
        response = client.post("/c/books/adjudicate/submit/", answer, headers={"HX-Request": "true"})
        costs.append(len(statements))
        page = response.content.decode()
        assert response.status_code == 200 and f"<strong>{left}</strong>" in page
        decision = Judgment.objects.get(item=item, step="adjudication")
        assert (decision.grade, decision.milliseconds, decision.idle_milliseconds) == (1, 5000, 1000)
    # Membership; the conflict locked; settled; the audit log; the next conflict; its texts; what was said about it.
    assert max(costs[1:]) == 7, statements
    assert list(Label.objects.values_list("grade", "origin")) == [(1, "adjudicator")] * 4
    assert rebuild_labels(collection) == 0
    assert sum(Tally.objects.filter(key="settled").values_list("value", flat=True)) == 4
