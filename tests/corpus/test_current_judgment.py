"""Which judgments count is said by one database view, and by nothing else."""

import re
from pathlib import Path

import pytest

from corpus.models import CurrentJudgment, Judgment
from tests.evidence import make_assessor, make_judgment
from tests.factories import make_collection, make_pair

ROOT = Path(__file__).parents[2]
PREDICATE = re.compile(r"\.supersedes_id = \w+\.id|superseded_by(__isnull)?=")


@pytest.mark.django_db
def test_a_judgment_counts_until_a_later_one_supersedes_it() -> None:
    books = make_collection()
    pair, alice = make_pair(books), make_assessor(books, "alice")
    first = make_judgment(pair, alice, 1)
    assert CurrentJudgment.objects.get().pk == first.pk
    withdrawal = make_judgment(pair, alice, None, supersedes=first)
    assert not CurrentJudgment.objects.exists()
    assert Judgment.objects.heads().get() == withdrawal
    again = make_judgment(pair, alice, 0, supersedes=withdrawal)
    kept = CurrentJudgment.objects.get()
    assert (kept.pk, kept.grade, kept.pair, kept.assessor) == (again.pk, 0, pair, alice)


def test_what_is_superseded_is_said_by_the_view_and_the_model_alone() -> None:
    packages = [package.parent for package in ROOT.glob("*/__init__.py") if package.parent.name != "tests"]
    own = [path for package in packages for kind in ("py", "sql") for path in package.rglob(f"*.{kind}")]
    said = {str(path.relative_to(ROOT)) for path in own if PREDICATE.search(path.read_text())}
    assert said == {"corpus/migrations/0002_database.sql", "corpus/models/judging.py"}
